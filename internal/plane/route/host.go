package route

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Host is what a network namespace has, ours and others': facts of the world. All lists are sorted.
type Host struct {
	Links  []Link    // by name
	Addrs  []Address // by link and prefix
	Routes []Main    // by destination and metric
}

// Link is a network interface. Kind is the kernel's ("veth", "bridge", "vrf"; "device" for hardware), Master the name of the bridge,
// bond or VRF that it is in, or "".
type Link struct {
	Name   string
	Index  int
	MAC    string // "" for links without
	Up     bool   // administratively
	MTU    int
	Kind   string
	Master string
}

// Address is an address of a link, with the prefix length it is configured with.
type Address struct {
	Dev        string
	Prefix     netip.Prefix
	Deprecated bool // the kernel does not pick it as a source (RFC 4862 5.5.4)
	Tentative  bool // duplicate address detection has not ended well, or not yet
	Ours       bool // carries AddrProtocol
}

// Main is a unicast route of the main table. Of a route with several nexthops there is one for each.
type Main struct {
	Dst    netip.Prefix
	Via    netip.Addr // zero: on link
	Dev    string
	Src    netip.Addr
	Metric int
	Ours   bool // carries Protocol
}

// Default is the default route of that family with the least metric.
func (h Host) Default(v6 bool) (Main, bool) {
	for _, r := range h.Routes {
		if r.Dst.Bits() == 0 && r.Dst.Addr().Is6() == v6 {
			return r, true
		}
	}
	return Main{}, false
}

// Link is the link of that name.
func (h Host) Link(name string) (Link, bool) {
	i, ok := slices.BinarySearchFunc(h.Links, name, func(l Link, n string) int { return cmp.Compare(l.Name, n) })
	if !ok {
		return Link{}, false
	}
	return h.Links[i], true
}

// ReadHost reads the network namespace that the calling thread is in.
func ReadHost(ctx context.Context) (Host, error) {
	n, err := netlink.NewHandleWithOptions(netlink.HandleOptions{RetryInterrupted: true}, unix.NETLINK_ROUTE)
	if err != nil {
		return Host{}, fmt.Errorf("open a netlink socket: %w", err)
	}
	defer n.Close()
	links, err := n.LinkList()
	if err != nil {
		return Host{}, fmt.Errorf("list links: %w", err)
	}
	addrs, err := n.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return Host{}, fmt.Errorf("list addresses: %w", err)
	}
	var routes []netlink.Route
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		list, err := n.RouteList(nil, family)
		if err != nil {
			return Host{}, fmt.Errorf("list routes: %w", err)
		}
		routes = append(routes, list...)
	}
	name := map[int]string{}
	for _, l := range links {
		name[l.Attrs().Index] = l.Attrs().Name
	}
	return Host{hostLinks(links, name), hostAddrs(addrs, name), hostRoutes(routes, name)}, ctx.Err()
}

func hostLinks(links []netlink.Link, name map[int]string) []Link {
	var all []Link
	for _, l := range links {
		a := l.Attrs()
		all = append(all, Link{a.Name, a.Index, a.HardwareAddr.String(), a.Flags&net.FlagUp != 0, a.MTU, l.Type(), name[a.MasterIndex]})
	}
	slices.SortFunc(all, func(a, b Link) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

func hostAddrs(addrs []netlink.Addr, name map[int]string) []Address {
	var all []Address
	for _, a := range addrs {
		if p, ok := fromIPNet(a.IPNet); ok {
			all = append(all, Address{name[a.LinkIndex], p, deprecated(a), a.Flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) != 0, a.Protocol == AddrProtocol})
		}
	}
	slices.SortFunc(all, func(a, b Address) int {
		return cmp.Or(cmp.Compare(a.Dev, b.Dev), a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()))
	})
	return all
}

func hostRoutes(routes []netlink.Route, name map[int]string) []Main {
	var all []Main
	for _, r := range routes {
		if r.Type != unix.RTN_UNICAST {
			continue
		}
		dst, ok := fromIPNet(r.Dst)
		if !ok {
			dst = defaultPrefix(r.Family)
		}
		m := Main{dst, fromIP(r.Gw), name[r.LinkIndex], fromIP(r.Src), r.Priority, int(r.Protocol) == Protocol}
		if len(r.MultiPath) == 0 {
			all = append(all, m)
		}
		for _, hop := range r.MultiPath {
			m.Via, m.Dev = fromIP(hop.Gw), name[hop.LinkIndex]
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b Main) int {
		return cmp.Or(a.Dst.Addr().Compare(b.Dst.Addr()), cmp.Compare(a.Dst.Bits(), b.Dst.Bits()), cmp.Compare(a.Metric, b.Metric),
			cmp.Compare(a.Dev, b.Dev), a.Via.Compare(b.Via))
	})
	return all
}
