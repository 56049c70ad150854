package world

import (
	"fmt"
	"net/netip"
)

// The shortest prefixes that a node's link can have. No network of hosts is larger than the largest private one,
// 10.0.0.0/8, or than a provider's IPv6 range, a /32. A larger one is the Internet. Prefixes of one address are what
// many clouds give their machines.
const (
	shortestV4 = 8
	shortestV6 = 32
)

// thisNetwork is RFC 1122's: no host has an address there.
var thisNetwork = netip.MustParsePrefix("0.0.0.0/8")

// NotAHosts says why an address cannot be one that a host has on a network, given with the network's length; "" if it
// can.
func NotAHosts(p netip.Prefix) string {
	a, shortest := p.Addr(), shortestV4
	if FamilyOf(a) == V6 {
		shortest = shortestV6
	}
	switch {
	case !a.IsGlobalUnicast() || thisNetwork.Contains(a):
		return "is no unicast address that other hosts can reach"
	case p.Bits() < shortest:
		return fmt.Sprintf("is in a network larger than a /%d", shortest)
	case isEnd(p, a):
		return "is the first or last address of its network " + p.Masked().String() + ", which no host has"
	}
	return ""
}

// isEnd says whether an address is one of a network that no host has: the network's own, which in IPv6 is every
// router's (RFC 4291, 2.6.1), and in IPv4 the broadcast address. Networks of one or two addresses have neither
// (RFC 3021, RFC 6164).
func isEnd(network netip.Prefix, a netip.Addr) bool {
	network = network.Masked()
	if a.BitLen()-network.Bits() < 2 {
		return false
	}
	return a == network.Addr() || a.Is4() && network.Contains(a) && !network.Contains(a.Next())
}
