package world_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// someDestinations are of EgressIPs in order of precedence: everything, nothing, and some of sixteen addresses.
func someDestinations(t *rapid.T) (of []destinations.Set) {
	for range rapid.IntRange(0, 6).Draw(t, "EgressIPs") {
		d := destinations.Of()
		for range rapid.IntRange(0, 3).Draw(t, "prefixes") {
			a, bits := byte(rapid.IntRange(0, 15).Draw(t, "address")), rapid.IntRange(28, 32).Draw(t, "bits")
			d = d.Union(destinations.Of(netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 20, 0, a}), bits)))
		}
		if rapid.IntRange(0, 5).Draw(t, "everything") == 0 {
			d = destinations.Everything()
		}
		of = append(of, d)
	}
	return of
}

// setDestinations gives EgressIP e<i> what the i-th has.
func setDestinations(w *world.World, of []destinations.Set) {
	for i, d := range of {
		e := selective(i)
		if d.Equal(destinations.Everything()) {
			e.Traffic = nil
		}
		o := compiletest.Traffic(i, fmt.Sprint(i))
		o.Networks = d
		w.SetTraffic(o)
		w.SetEgressIP(e)
	}
}

// TestClaimsAreDisjoint: a claim stands unless it is of nothing, or of a destination that an older one that stands has.
func TestClaimsAreDisjoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := someDestinations(t)
		var taken [17]bool // the last stands for all other destinations
		var want []string
		for n, d := range all {
			var has [17]bool
			for i := range has {
				has[i] = d.Contains(netip.AddrFrom4([4]byte{172, 20, 0, byte(i)}))
			}
			free, any := true, false
			for i := range has {
				free, any = free && !(has[i] && taken[i]), any || has[i]
			}
			if !free || !any {
				continue
			}
			want = append(want, fmt.Sprint("e", n))
			for i := range has {
				taken[i] = taken[i] || has[i]
			}
		}
		w := compiletest.Small("n1", world.SharedGateway)
		w.SetNamespace(&world.Namespace{Name: "ns"})
		setDestinations(w, all)
		var have []string
		for _, c := range w.Claims(&world.Pod{Namespace: "ns", Name: "p"}, ref.DefaultNetwork, world.V4) {
			have = append(have, c.By.Name)
		}
		if !slices.Equal(have, want) {
			t.Fatalf("of %v stand %v, want %v", all, have, want)
		}
	})
}
