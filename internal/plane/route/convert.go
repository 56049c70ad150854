package route

import (
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
)

func toIPNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// fromIPNet is a prefix as it is written, host bits included; ok is false for none.
func fromIPNet(n *net.IPNet) (p netip.Prefix, ok bool) {
	if n == nil {
		return p, false
	}
	bits, size := n.Mask.Size()
	a, ok := netip.AddrFromSlice(n.IP)
	if !ok || size == 0 {
		return p, false
	}
	if size == 32 {
		a = a.Unmap()
	}
	return netip.PrefixFrom(a, bits), true
}

// fromIP is an address; the zero Addr for none.
func fromIP(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}

// nextHop is a gateway of the route's own family, or of the other one (RTA_VIA, RFC 5549); the zero Addr for none.
func nextHop(gw net.IP, via netlink.Destination) netip.Addr {
	if v, ok := via.(*netlink.Via); ok {
		return fromIP(v.Addr)
	}
	return fromIP(gw)
}

func onLink(flags int) bool { return flags&int(netlink.FLAG_ONLINK) != 0 }

func defaultPrefix(family int) netip.Prefix {
	if family == netlink.FAMILY_V6 {
		return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
}
