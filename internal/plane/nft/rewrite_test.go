package nft

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/planetest"
)

// networks are every second one of 2n prefixes that follow one another, and of these every step-th.
func networks(first, n, step int) []string {
	var out []string
	for i := 0; i < n; i += step {
		out = append(out, fmt.Sprintf("%d.%d.%d.0/24", first, 2*i>>8, 2*i&255))
	}
	return out
}

func networkRows(keys []string) *plan.Rows {
	r := &plan.Rows{NFTSets: map[plan.NFTSet]plan.NFTSetSpec{{Name: "many"}: {Key: "ipv4_addr",
		Interval: true}}}
	for _, key := range keys {
		plan.Add(&r.NFTElems, plan.NFTElem{Set: "many", Key: key}, "")
	}
	return r
}

// TestManyNetworksAreReplaced: thousands of elements leave an interval set within a call, also where others that
// contain them need their room, and those that stay do.
func TestManyNetworksAreReplaced(t *testing.T) {
	p := openPlane(t)
	some := networks(10, 9000, 3)
	s, old := plan.New(), &plan.Rows{}
	for _, x := range []struct {
		name string
		keys []string
	}{
		{"at first", networks(10, 9000, 1)},
		{"two thirds for others", slices.Concat(some, networks(11, 9000, 1))},
		{"others for one that contains them", slices.Concat(some, []string{"11.0.0.0/8"})},
		{"one for them again, and most are gone", networks(11, 9000, 50)},
	} {
		rows := networkRows(x.keys)
		s.Replace(planetest.Owner("o"), old, rows)
		old = rows
		if err := apply(t, p, s); err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		have, err := p.Sets(t.Context(), func(name string) bool { return name == "many" })
		slices.Sort(have["many"])
		slices.Sort(x.keys)
		if err != nil || !slices.Equal(have["many"], x.keys) {
			t.Fatalf("%s: the set has %d elements, %v, want %d", x.name, len(have["many"]), err, len(x.keys))
		}
	}
}

// TestRoomForManyOfSeveral: where several owners add to a set, each takes along what has to go for it alone.
func TestRoomForManyOfSeveral(t *testing.T) {
	held := newHeld()
	held.elems["many"] = map[string]string{}
	for _, key := range slices.Concat(networks(10, 200, 1), networks(11, 200, 1)) {
		held.elems["many"][key] = ""
	}
	set := object{"set", "many"}
	one := wantedElem{owner: planetest.Owner("o"), set: set, key: "10.0.0.0/8"}
	other := wantedElem{owner: planetest.Owner("p"), set: set, key: "11.0.0.0/8"}
	if steps := roomSteps(set, []wantedElem{one, other}, maps.Clone(held.elems["many"]), held); len(steps) != 400 {
		t.Errorf("%d steps of two owners", len(steps))
	}
	steps := roomSteps(set, []wantedElem{one}, maps.Clone(held.elems["many"]), held)
	if len(steps) != 1 || steps[0].owner != one.owner {
		t.Fatalf("%d steps of one owner", len(steps))
	}
	steps[0].note(held)
	if have := slices.Sorted(maps.Keys(held.elems["many"])); !slices.Equal(have, slices.Sorted(slices.Values(
		networks(11, 200, 1)))) {
		t.Errorf("%d stay", len(have))
	}
}
