package nft

import (
	"fmt"
	"slices"
	"testing"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/planetest"
)

// Two sets that lose elements first, another address's set of the first kind, and two that lose them last: nobody wants
// the first of these.
const (
	partly, goes, networksOf = "e_1/partly.v4", "e_2/partly.v4", "e/destinations.v4"
	formerly, filtered       = "f/destinations.v4", "e/guarded.v4"
)

// lossRows has a rule that matches sets, which have these elements.
func lossRows(sets map[string][]string) *plan.Rows {
	r := &plan.Rows{NFTChains: map[plan.NFTChain]plan.NFTChainSpec{inetChain("pre"): prerouting}}
	for set, keys := range sets {
		spec := plan.NFTSetSpec{Key: "ipv4_addr", Interval: set == networksOf || set == formerly}
		plan.Add(&r.NFTSets, plan.NFTSet{Name: set}, spec)
		plan.Add(&r.NFTRules, plan.NFTRule{Chain: inetChain("pre"), Name: set}, "ip saddr @"+set+" accept")
		for _, key := range keys {
			plan.Add(&r.NFTElems, plan.NFTElem{Set: set, Key: key}, "")
		}
	}
	return r
}

// before and after are what is there, and what is wanted: networks shrink, and one that contains others comes.
var (
	before = lossRows(map[string][]string{partly: {"10.0.0.1", "10.0.0.2"}, goes: {"10.0.0.1"},
		networksOf: {"192.0.2.0/25", "198.51.100.0/24"}, formerly: {"192.0.2.0/24"},
		filtered: {"10.0.0.1", "10.0.0.2"}})
	after = lossRows(map[string][]string{partly: {"10.0.0.2", "10.0.0.3"}, networksOf: {"192.0.2.0/24"},
		filtered: {"10.0.0.2"}})
)

// TestLosesFirst: what leaves sets of pods and of destinations is gone once the plane has grown, whatever becomes of
// the sets, and also where another process has written them. A leak filter loses nothing before the plane shrinks, nor
// do destinations that nobody wants.
func TestLosesFirst(t *testing.T) {
	lost := map[string]string{partly: "[10.0.0.2 10.0.0.3]", goes: "[]", networksOf: "[192.0.2.0/24]",
		formerly: "[192.0.2.0/24]", filtered: "[10.0.0.1 10.0.0.2]"}
	for name, grow := range map[string]func(t *testing.T, p *Plane, s *plan.State) error{
		"as it goes on": func(t *testing.T, p *Plane, s *plan.State) error {
			s.Replace(planetest.Owner("o"), before, after)
			return p.Grow(t.Context(), s)
		},
		"as another process": func(t *testing.T, p *Plane, _ *plan.State) error {
			p.Forget()
			return p.Grow(t.Context(), state(map[string]*plan.Rows{"o": after}))
		},
		"after an early one": func(t *testing.T, p *Plane, _ *plan.State) error {
			s := state(map[string]*plan.Rows{"o": after})
			p.Forget()
			fatal(t, p.EarlyPlane().Grow(t.Context(), s))
			return p.Grow(t.Context(), s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, s := openPlane(t), state(map[string]*plan.Rows{"o": before})
			fatal(t, apply(t, p, s))
			fatal(t, grow(t, p, s))
			expectSets(t, p, lost)
		})
	}
}

// TestOneElementIsLostAlone: a pod that goes leaves the others, and needs nothing but netlink.
func TestOneElementIsLostAlone(t *testing.T) {
	p, s := openPlane(t), state(map[string]*plan.Rows{"o": lossRows(map[string][]string{partly: {"10.0.0.1"}}),
		"p": elements(partly, "10.0.0.2")})
	fatal(t, apply(t, p, s))
	s.Replace(planetest.Owner("p"), elements(partly, "10.0.0.2"), &plan.Rows{})
	fatal(t, p.Grow(t.Context(), s))
	expectSets(t, p, map[string]string{partly: "[10.0.0.1]"})
	fatal(t, plane.Shrink(t.Context(), []plane.Plane{p}, s))
	expectSets(t, p, map[string]string{partly: "[10.0.0.1]"})
}

// TestEarlyLosesNothing: before the cluster is known, a plan does not say what is not wanted.
func TestEarlyLosesNothing(t *testing.T) {
	p := openPlane(t)
	fatal(t, apply(t, p, state(map[string]*plan.Rows{"o": before})))
	p.Forget()
	fatal(t, p.EarlyPlane().Grow(t.Context(), state(map[string]*plan.Rows{"o": lossRows(nil)})))
	expectSets(t, p, map[string]string{partly: "[10.0.0.1 10.0.0.2]", goes: "[10.0.0.1]",
		networksOf: "[192.0.2.0/25 198.51.100.0/24]", filtered: "[10.0.0.1 10.0.0.2]"})
}

func elements(set string, keys ...string) *plan.Rows {
	r := &plan.Rows{}
	for _, key := range keys {
		plan.Add(&r.NFTElems, plan.NFTElem{Set: set, Key: key}, "")
	}
	return r
}

func expectSets(t *testing.T, p *Plane, want map[string]string) {
	t.Helper()
	have, err := p.Sets(t.Context(), func(string) bool { return true })
	fatal(t, err)
	for set, elems := range want {
		slices.Sort(have[set])
		if fmt.Sprint(have[set]) != elems {
			t.Errorf("%s has %s, want %s", set, have[set], elems)
		}
	}
}
