package destinations_test

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/destinations"
)

// universe is few enough addresses to ask for each: sixteen of IPv4, and as many of IPv6.
var universe = func() (all []netip.Addr) {
	for i := range 16 {
		all = append(all, netip.AddrFrom4([4]byte{172, 20, 0, byte(i)}))
		all = append(all, netip.AddrFrom16([16]byte{0: 0xfd, 15: byte(i)}))
	}
	return all
}()

// prefixes are drawn as people write them: in any order, repeatedly, within one another, with bits beyond their length,
// and of IPv4 in either spelling.
func prefixes(t *rapid.T, name string) []netip.Prefix {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) netip.Prefix {
		a, free := rapid.SampledFrom(universe).Draw(t, "address"), rapid.IntRange(0, 5).Draw(t, "free bits")
		if a.Is4() && rapid.Bool().Draw(t, "in IPv6") {
			a = netip.AddrFrom16(a.As16())
		}
		return netip.PrefixFrom(a, a.BitLen()-free)
	}), 0, 6).Draw(t, name)
}

func inAny(ps []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(ps, func(p netip.Prefix) bool {
		return p.Contains(a) || a.Is4() && p.Contains(netip.AddrFrom16(a.As16()))
	})
}

// TestSetsAreSetsOfAddresses: operations say of sets what one finds who asks for each address.
func TestSetsAreSetsOfAddresses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q := prefixes(t, "one"), prefixes(t, "other")
		s, o := destinations.Of(p...), destinations.Of(q...)
		if slices.ContainsFunc(s, func(n netip.Prefix) bool { return n != n.Masked() }) {
			t.Fatalf("%v has bits beyond a length", s)
		}
		for _, n := range append(q, p...) {
			n = destinations.Of(n)[0] // without bits beyond its length
			whole := !slices.ContainsFunc(universe, func(a netip.Addr) bool { return n.Contains(a) && !s.Contains(a) })
			if within([]netip.Prefix{n}) && s.Covers(n) != whole {
				t.Fatalf("%v covers %s: %v, want %v", s, n, !whole, whole)
			}
		}
		same, common := true, false
		var singles []netip.Prefix
		for _, a := range universe {
			in, out := inAny(p, a), inAny(q, a)
			if in {
				singles = append(singles, netip.PrefixFrom(a, a.BitLen()))
			}
			if s.Contains(a) != in || s.Union(o).Contains(a) != (in || out) {
				t.Fatalf("%v and %v: %s in the former: %v; in both: %v", p, q, a, s.Contains(a), s.Union(o).Contains(a))
			}
			same, common = same && in == out, common || in && out
		}
		if s.Overlaps(o) != common || o.Overlaps(s) != common {
			t.Fatalf("%v and %v overlap: %v and %v, want %v", s, o, s.Overlaps(o), o.Overlaps(s), common)
		}
		if within(p) && !s.Equal(destinations.Of(singles...)) {
			t.Fatalf("%v is written as %v, and by its addresses as %v", p, s, destinations.Of(singles...))
		}
		if s.Equal(o) != same && within(p) && within(q) {
			t.Fatalf("%v and %v are the same: %v, want %v", s, o, s.Equal(o), same)
		}
	})
}

// within says whether prefixes have no address outside the universe.
func within(ps []netip.Prefix) bool {
	return !slices.ContainsFunc(ps, func(p netip.Prefix) bool { return p.Addr().BitLen()-p.Bits() > 4 })
}

// TestEverything: everything has all addresses, and no prefixes are nothing.
func TestEverything(t *testing.T) {
	some, none := destinations.Of(netip.MustParsePrefix("172.20.0.0/16")), destinations.Of()
	all := destinations.Everything()
	for _, x := range []struct {
		have, want bool
		what       string
	}{
		{all.Contains(netip.MustParseAddr("1.1.1.1")) && all.Contains(netip.MustParseAddr("2001:db8::1")), true,
			"everything contains an address"},
		{all.Covers(some[0]), true, "everything covers a prefix"},
		{none.Contains(netip.MustParseAddr("1.1.1.1")), false, "nothing contains an address"},
		{all.Overlaps(some) && some.Overlaps(all) && all.Overlaps(all), true, "everything overlaps something"},
		{all.Overlaps(none) || none.Overlaps(all) || none.Overlaps(some), false, "nothing overlaps"},
		{all.Equal(none), false, "everything is nothing"},
		{all.Union(some).Equal(all) && some.Union(all).Equal(all), true, "everything and something is everything"},
	} {
		if x.have != x.want {
			t.Errorf("%s: %v", x.what, x.have)
		}
	}
	if have := some.Union(destinations.Of(netip.MustParsePrefix("172.21.1.0/16"))).String(); have != "172.20.0.0/15" {
		t.Errorf("two halves are %s", have)
	}
}

// TestWithout: what is left of a set is the addresses that the other has not, in as few prefixes as can be.
func TestWithout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, o := destinations.Of(prefixes(t, "one")...), destinations.Of(prefixes(t, "other")...)
		left := s.Without(o)
		if !left.Equal(destinations.Of(left...)) {
			t.Fatalf("%v without %v is %v, want %v", s, o, left, destinations.Of(left...))
		}
		for _, a := range universe {
			if want := s.Contains(a) && !o.Contains(a); left.Contains(a) != want {
				t.Fatalf("%v without %v is %v: has %s: %t", s, o, left, a, !want)
			}
		}
	})
	if left := destinations.Of(netip.MustParsePrefix("172.20.0.100/31")).Without(
		destinations.Of(netip.MustParsePrefix("172.20.0.100/32"))); left.String() != "172.20.0.101/32" {
		t.Errorf("left: %v", left)
	}
	all := destinations.Everything()
	if left := all.Without(all); len(left) > 0 {
		t.Errorf("everything leaves %v", left)
	}
	if left := all.Without(nil); !left.Equal(all) {
		t.Errorf("nothing leaves %v", left)
	}
}
