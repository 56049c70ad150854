package world_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// someClaims are drawn in order of precedence: of everything, of nothing, and of some of sixteen addresses.
func someClaims(t *rapid.T) (claims []world.Claim) {
	for i := range rapid.IntRange(0, 6).Draw(t, "claims") {
		c := world.Claim{By: ref.Of(ref.EgressIP, fmt.Sprint(i)), Destinations: destinations.Of()}
		for range rapid.IntRange(0, 3).Draw(t, "prefixes") {
			a, bits := byte(rapid.IntRange(0, 15).Draw(t, "address")), rapid.IntRange(28, 32).Draw(t, "bits")
			p := destinations.Of(netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 20, 0, a}), bits))
			c.Destinations = c.Destinations.Union(p)
		}
		if rapid.IntRange(0, 5).Draw(t, "everything") == 0 {
			c.Destinations = nil
		}
		claims = append(claims, c)
	}
	return claims
}

// TestClaimsAreDisjoint: a claim stands unless it is of nothing, or of a destination that an older one that stands has.
func TestClaimsAreDisjoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		claims := someClaims(t)
		var taken [17]bool // the last stands for all other destinations
		var want []world.Claim
		for _, c := range claims {
			var all [17]bool
			for i := range all {
				all[i] = c.Destinations.Contains(netip.AddrFrom4([4]byte{172, 20, 0, byte(i)}))
			}
			free, any := true, false
			for i := range all {
				free, any = free && !(all[i] && taken[i]), any || all[i]
			}
			if !free || !any {
				continue
			}
			want = append(want, c)
			for i := range all {
				taken[i] = taken[i] || all[i]
			}
		}
		if have := world.Disjoint(slices.Clone(claims)); fmt.Sprint(have) != fmt.Sprint(want) {
			t.Fatalf("of %v stand %v, want %v", claims, have, want)
		}
	})
}

// TestStandsBy: an EgressIP stands by for the claims to destinations that it would have, unless it has its own.
func TestStandsBy(t *testing.T) {
	e := &world.EgressIP{Name: "e", IPs: []netip.Addr{netip.MustParseAddr("172.18.0.33")}}
	some := func(name, prefix string) world.Claim {
		return world.Claim{By: ref.Of(ref.EgressIP, name), Destinations: destinations.Of(netip.MustParsePrefix(prefix))}
	}
	others := []world.Claim{some("a", "172.20.0.0/16"), some("b", "172.21.0.0/16")}
	if have := e.StandsBy(others, world.V4); len(have) != 2 {
		t.Errorf("stands by for %v, want both", have)
	}
	own := []world.Claim{some("e", "172.20.0.0/16")}
	for _, have := range [][]world.Claim{
		e.StandsBy(others, world.V6), e.StandsBy(nil, world.V4), e.StandsBy(own, world.V4),
	} {
		if len(have) > 0 {
			t.Errorf("stands by for %v", have)
		}
	}
}
