// Package destinations is sets of addresses that packets go to.
//
// In: prefixes, as people write them. Out: the one way to write the same set, and what sets have in common.
package destinations

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// Set is disjoint prefixes in order, as few as can be, so that two sets of the same addresses are equal element by
// element.
type Set []netip.Prefix

// Everything is all addresses of both families.
func Everything() Set {
	return Of(netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0))
}

// Of is the set of all addresses of prefixes.
func Of(prefixes ...netip.Prefix) Set {
	sorted := Set{}
	for _, p := range prefixes {
		if p = canonicalPrefix(p); p.IsValid() {
			sorted = append(sorted, p)
		}
	}
	slices.SortFunc(sorted, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	out := sorted[:0]
	for _, p := range sorted { // of two that overlap the one that comes first contains the other
		if n := len(out); n == 0 || !out[n-1].Overlaps(p) {
			out = mergeHalves(append(out, p))
		}
	}
	return out
}

// canonicalPrefix has no bits set beyond its length; IPv4-mapped IPv6 prefixes are IPv4's.
func canonicalPrefix(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked()
}

// mergeHalves puts one prefix in place of the last two while they are its halves.
func mergeHalves(s Set) Set {
	for len(s) > 1 {
		a, b := s[len(s)-2], s[len(s)-1]
		whole := netip.PrefixFrom(a.Addr(), a.Bits()-1).Masked()
		if a.Bits() != b.Bits() || a.Bits() == 0 || whole.Addr() != a.Addr() || !whole.Contains(b.Addr()) {
			break
		}
		s = append(s[:len(s)-2], whole)
	}
	return s
}

// Contains says whether an address is one of the set's.
func (s Set) Contains(a netip.Addr) bool {
	a = a.Unmap()
	i, found := slices.BinarySearchFunc(s, a, func(p netip.Prefix, a netip.Addr) int { return p.Addr().Compare(a) })
	return found || i > 0 && s[i-1].Contains(a)
}

// Covers says whether all addresses of a prefix are the set's.
func (s Set) Covers(p netip.Prefix) bool {
	i, found := slices.BinarySearchFunc(s, p.Addr(), func(o netip.Prefix, a netip.Addr) int {
		return o.Addr().Compare(a)
	})
	if !found {
		i--
	}
	return i >= 0 && s[i].Bits() <= p.Bits() && s[i].Contains(p.Addr())
}

// Overlaps says whether two sets have an address in common.
func (s Set) Overlaps(o Set) bool {
	for len(s) > 0 && len(o) > 0 {
		switch {
		case s[0].Overlaps(o[0]):
			return true
		case s[0].Addr().Less(o[0].Addr()):
			s = s[1:]
		default:
			o = o[1:]
		}
	}
	return false
}

// Union has the addresses of both.
func (s Set) Union(o Set) Set { return Of(slices.Concat(s, o)...) }

// Without is what a set has of addresses that another has not.
func (s Set) Without(o Set) Set {
	left := Set{}
	for _, p := range s {
		left = o.appendUncovered(p, left)
	}
	return left
}

// appendUncovered adds to a list what a prefix has that the set has not: the prefix, or what is so of its halves, in
// order.
func (s Set) appendUncovered(p netip.Prefix, list Set) Set {
	switch {
	case s.Covers(p):
		return list
	case !s.overlapsPrefix(p):
		return append(list, p)
	}
	lower := netip.PrefixFrom(p.Addr(), p.Bits()+1) // p is no single address: the set has a part of it
	return s.appendUncovered(Upper(lower), s.appendUncovered(lower, list))
}

// overlapsPrefix says whether any address of a prefix is the set's.
func (s Set) overlapsPrefix(p netip.Prefix) bool {
	i, _ := slices.BinarySearchFunc(s, p.Addr(), func(o netip.Prefix, a netip.Addr) int { return o.Addr().Compare(a) })
	return i < len(s) && s[i].Overlaps(p) || i > 0 && s[i-1].Overlaps(p)
}

// Upper is the prefix that follows one that is the lower half of a prefix.
func Upper(lower netip.Prefix) netip.Prefix {
	b, i := lower.Addr().AsSlice(), lower.Bits()-1
	b[i/8] |= 1 << (7 - i%8)
	a, _ := netip.AddrFromSlice(b) // of as many bytes as an address has
	return netip.PrefixFrom(a, lower.Bits())
}

// Equal says whether two sets have the same addresses.
func (s Set) Equal(o Set) bool { return slices.Equal(s, o) }

// String lists the prefixes.
func (s Set) String() string {
	texts := make([]string, len(s))
	for i, p := range s {
		texts[i] = p.String()
	}
	return strings.Join(texts, ",")
}
