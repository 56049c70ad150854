package nft

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawKeys are keys of an interval set: of prefixes within one another, of prefixes with ports, or of ranges of ports.
func drawKeys(t *rapid.T, what string) []string {
	prefixes := []string{"10.0.0.0/8", "10.0.0.0/15", "10.0.0.0/16", "10.1.0.0/16", "10.0.7.0/24", "10.0.7.1",
		"10.0.7.2", "11.0.0.0/8", "0.0.0.0/1", "fd00::/16", "fd00::1"}
	ports := []string{"80", "80-90", "85-100", "443"}
	keys := slices.Concat(prefixes, ports)
	for _, p := range prefixes {
		for _, port := range ports {
			keys = append(keys, p+" . "+port)
		}
	}
	return rapid.SliceOfDistinct(rapid.SampledFrom(keys), rapid.ID[string]).Draw(t, what)
}

// TestMakesRoomForAll: what is deleted are the unwanted keys that overlap any added one, each once.
func TestMakesRoomForAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var added []wantedElem
		for _, key := range drawKeys(t, "added") {
			added = append(added, wantedElem{key: key, row: key})
		}
		unwanted, h := map[string]string{}, newHeld()
		for _, key := range drawKeys(t, "unwanted") {
			unwanted[key] = ""
		}
		h.elems["s"] = maps.Clone(unwanted)
		want, before := maps.Clone(unwanted), len(unwanted)
		maps.DeleteFunc(want, func(key, _ string) bool {
			return slices.ContainsFunc(added, func(e wantedElem) bool { return keysOverlap(key, e.key) })
		})
		steps := makeRoomSteps(object{"set", "s"}, added, unwanted)
		for _, s := range steps {
			s.note(h)
		}
		if !maps.Equal(h.elems["s"], want) || !maps.Equal(unwanted, want) {
			t.Fatalf("%v stay, and %v are to be deleted yet; want %v", h.elems["s"], unwanted, want)
		}
		if len(steps) != before-len(want) {
			t.Fatalf("%d steps to delete %d", len(steps), before-len(want))
		}
	})
}

// TestMakesRoomForMany: to compare each of some thousands with each would allocate millions of times.
func TestMakesRoomForMany(t *testing.T) {
	const many = 1024
	port := func(i, shares int) string {
		return fmt.Sprintf("10.0.0.1 . tcp . %d . %s", i%32, share(i/32%shares, shares))
	}
	client := func(i int, of string) string { return fmt.Sprintf("%s . 192.0.2.1 . tcp . %d", of, i) }
	type names func(i int) string
	forms := map[string]struct{ added, old names }{
		"prefixes": {func(i int) string { return fmt.Sprintf("10.%d.%d.0/24", i>>8, i&255) },
			func(i int) string { return fmt.Sprintf("10.%d.%d.7", i>>8, i&255) }},
		"shares of one address": {func(i int) string { return port(i, 32) }, func(i int) string { return port(i, 31) }},
		"shares of one port": {func(i int) string { return "10.0.0.1 . tcp . 80 . " + share(i, many) },
			func(i int) string { return "10.0.0.1 . tcp . 80 . " + share(i, many) }},
		"clients of one range": {func(i int) string { return client(i, "10.0.0.0/8") },
			func(i int) string { return client(i, "10.0.0.0/16") }},
	}
	for name, form := range forms {
		var added []wantedElem
		old := map[string]string{}
		for i := range many {
			added = append(added, wantedElem{key: form.added(i)})
			old[form.old(i)] = ""
		}
		steps := 0
		allocations := testing.AllocsPerRun(1, func() {
			steps = len(makeRoomSteps(object{"set", "s"}, added, maps.Clone(old)))
		})
		if steps != len(old) || allocations > 40*many {
			t.Errorf("%s: %d steps, and %g allocations", name, steps, allocations)
		}
	}
}

// share is the n-th of several parts of the numbers below 65,536.
func share(n, of int) string { return fmt.Sprintf("%d-%d", n*65536/of, (n+1)*65536/of-1) }
