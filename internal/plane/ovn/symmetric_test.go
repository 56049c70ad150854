package ovn

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSymmetric: what is in one of two sets and not in both, in order.
func TestSymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := rapid.Map(rapid.SliceOfDistinct(rapid.StringMatching("[a-d]{1,2}"), rapid.ID[string]),
			func(s []string) []string { slices.Sort(s); return s })
		a, b := set.Draw(t, "a"), set.Draw(t, "b")
		var want []string
		for _, x := range slices.Concat(a, b) {
			if slices.Contains(a, x) != slices.Contains(b, x) {
				want = append(want, x)
			}
		}
		slices.Sort(want)
		if have := symmetricDiff(a, b); !slices.Equal(have, want) {
			t.Errorf("of %v and %v: %v, want %v", a, b, have, want)
		}
	})
}

// BenchmarkSymmetric: an address comes into a set of 50,000, and goes.
func BenchmarkSymmetric(b *testing.B) {
	var set []string
	for i := range 50_000 {
		set = append(set, fmt.Sprintf("10.%d.%d.%d", i>>14, i>>7&127, i&127))
	}
	slices.Sort(set)
	b.ReportAllocs()
	for b.Loop() {
		symmetricDiff(set, []string{"10.2.60.200"})
	}
}
