package world

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"iter"
	"net/netip"
)

// Family is an IP family, a value like any other: nothing is written twice for the two.
type Family uint8

const (
	V4 Family = iota
	V6
)

// FamilyOf is the family of an address.
func FamilyOf(a netip.Addr) Family {
	if a.Is4() {
		return V4
	}
	return V6
}

// String is "v4" or "v6".
func (f Family) String() string { return [...]string{"v4", "v6"}[f] }

// Match is the family's name in OVN's match language: "ip4" or "ip6".
func (f Family) Match() string { return [...]string{"ip4", "ip6"}[f] }

// Bits is the length of an address.
func (f Family) Bits() int { return [...]int{32, 128}[f] }

// Of returns the first prefix of the family in ps, and whether there is one.
func (f Family) Of(ps []netip.Prefix) (netip.Prefix, bool) {
	for _, p := range ps {
		if FamilyOf(p.Addr()) == f {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

// OfAddrs returns the addresses of the family.
func (f Family) OfAddrs(as []netip.Addr) []netip.Addr {
	var out []netip.Addr
	for _, a := range as {
		if FamilyOf(a) == f {
			out = append(out, a)
		}
	}
	return out
}

// Nth is the n-th address of a prefix, counted from its network address. n is less than 2^32.
func Nth(p netip.Prefix, n int) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	low := b[len(b)-4:]
	binary.BigEndian.PutUint32(low, binary.BigEndian.Uint32(low)+uint32(n))
	a, _ := netip.AddrFromSlice(b)
	return a
}

// MAC is the hardware address that goes with an address: 0a:58 and the IPv4 address, or a hash of the IPv6 one, as in
// OVN-Kubernetes.
func MAC(a netip.Addr) string {
	if a.Is4() {
		b := a.As4()
		return fmt.Sprintf("0a:58:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3])
	}
	h := fnv.New32a()
	b := a.As16()
	h.Write(b[:])
	s := h.Sum32()
	return fmt.Sprintf("0a:58:%02x:%02x:%02x:%02x", byte(s>>24), byte(s>>16), byte(s>>8), byte(s))
}

// Single is the prefix that holds a alone.
func Single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// Longest is the longest of some prefixes that an address is in; zero if it is in none.
func Longest(of iter.Seq[netip.Prefix], ip netip.Addr) (longest netip.Prefix) {
	for p := range of {
		if p.Contains(ip) && p.Bits() > longest.Bits() {
			longest = p
		}
	}
	return longest
}

// All is the prefix of the family's every address: 0.0.0.0/0 or ::/0.
func (f Family) All() netip.Prefix { return netip.PrefixFrom(f.Unspecified(), 0) }

// Unspecified returns the family's unspecified address: 0.0.0.0 or ::.
func (f Family) Unspecified() netip.Addr {
	if f == V4 {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}
