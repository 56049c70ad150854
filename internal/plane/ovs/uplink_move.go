package ovs

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// moveConfig adds addresses, then points routes to the new device, then removes the old addresses: the kernel keeps a
// route as long as its device and its preferred source are there.
func moveConfig(from, to netlink.Link) error {
	addrs, err := globalAddrs(from)
	if err != nil {
		return err
	}
	for _, a := range addrs {
		if err := addAddr(to, a, false); err != nil {
			return err
		}
	}
	if err := moveRoutes(from, to); err != nil {
		return err
	}
	return removeAddrs(from, addrs)
}

// takeBack is move, but for addresses that are on the device alone: a program that has put them there, as keepalived
// does on the link that its configuration names, takes them away there, too.
func takeBack(from, to netlink.Link) error {
	addrs, err := globalAddrs(from)
	if err != nil {
		return err
	}
	moved, err := globalAddrs(to)
	if err != nil {
		return err
	}
	if err := moveRoutes(from, to); err != nil {
		return err
	}
	return removeAddrs(from, slices.DeleteFunc(addrs, func(a netlink.Addr) bool {
		return !slices.ContainsFunc(moved, func(m netlink.Addr) bool { return m.IP.Equal(a.IP) })
	}))
}

func removeAddrs(from netlink.Link, addrs []netlink.Addr) error {
	for _, a := range addrs {
		if err := netlink.AddrDel(from, &a); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return fmt.Errorf("remove %s from %s: %w", a.IPNet, from.Attrs().Name, err)
		}
	}
	return nil
}

func globalAddrs(link netlink.Link) ([]netlink.Addr, error) {
	addrs, err := netlink.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list addresses of %s: %w", link.Attrs().Name, err)
	}
	return slices.DeleteFunc(addrs, func(a netlink.Addr) bool {
		return a.IP.IsLinkLocalUnicast() && a.IP.To4() == nil
	}), nil
}

// addAddr adds an address as it was elsewhere. asks is whether the kernel asks who else has it, over IPv6, before it
// uses it.
func addAddr(link netlink.Link, a netlink.Addr, asks bool) error {
	a.Label, a.LinkIndex = "", link.Attrs().Index // an IPv4 label has to begin with the device's name
	a.Flags &^= unix.IFA_F_PERMANENT | unix.IFA_F_TENTATIVE | unix.IFA_F_DADFAILED | unix.IFA_F_NODAD
	if a.IP.To4() == nil && !asks {
		a.Flags |= unix.IFA_F_NODAD
	}
	if a.IP.To4() != nil && a.Broadcast == nil {
		a.Broadcast = net.IPv4zero // none; left out, netlink would choose one
	}
	if temporary := a.IP.To4() == nil && a.Flags&unix.IFA_F_TEMPORARY != 0; !temporary {
		lastFor(&a)
	}
	if err := netlink.AddrReplace(link, &a); err != nil {
		return fmt.Errorf("add %s to %s: %w", a.IPNet, link.Attrs().Name, err)
	}
	return nil
}

// lastFor gives an address no end. A deprecated one stays so (RFC 4862 5.5.4).
func lastFor(a *netlink.Addr) {
	const forever = math.MaxUint32 // INFINITY_LIFE_TIME, Linux
	if deprecated := a.ValidLft > 0 && a.PreferedLft == 0; !deprecated {
		a.PreferedLft = forever
	}
	a.ValidLft = forever
}

func moveRoutes(from, to netlink.Link) error {
	routes, err := mainRoutes(from)
	if err != nil {
		return err
	}
	for _, r := range routes {
		redirectNextHops(&r, from, to)
		if err := keepExpiry(&r, from, to); err != nil {
			return err
		}
		if err := netlink.RouteReplace(&r); err != nil {
			return fmt.Errorf("move route %s to %s: %w", r, to.Attrs().Name, err)
		}
	}
	return nil
}

// mainRoutes are those of the main table with a next hop by a link, those on link first: gateways are reached through
// them. The kernel's own are left out, which come and go with the addresses.
func mainRoutes(link netlink.Link) ([]netlink.Route, error) {
	addrs, err := globalAddrs(link)
	if err != nil {
		return nil, err
	}
	var all []netlink.Route
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes, err := netlink.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_MAIN},
			netlink.RT_FILTER_TABLE)
		if err != nil {
			return nil, fmt.Errorf("list routes of %s: %w", link.Attrs().Name, err)
		}
		all = append(all, routes...)
	}
	all = slices.DeleteFunc(all, func(r netlink.Route) bool {
		return r.Protocol == unix.RTPROT_KERNEL && !isManagersRoute(r, addrs) || !leadsBy(r, link)
	})
	slices.SortStableFunc(all, func(a, b netlink.Route) int { return viaOrder(a) - viaOrder(b) })
	return all, nil
}

// isManagersRoute says that a route to the prefix of an address, though it has protocol kernel, is not the kernel's.
// The link's manager tells the kernel to make no such route (noprefixroute), and makes it with its own metric.
func isManagersRoute(r netlink.Route, addrs []netlink.Addr) bool {
	return slices.ContainsFunc(addrs, func(a netlink.Addr) bool {
		prefix := net.IPNet{IP: a.IP.Mask(a.Mask), Mask: a.Mask}
		return a.Flags&unix.IFA_F_NOPREFIXROUTE != 0 && r.Dst != nil && r.Dst.String() == prefix.String()
	})
}

func leadsBy(r netlink.Route, link netlink.Link) bool {
	by := func(n *netlink.NexthopInfo) bool { return n.LinkIndex == link.Attrs().Index }
	return len(r.MultiPath) == 0 && r.LinkIndex == link.Attrs().Index || slices.ContainsFunc(r.MultiPath, by)
}

// redirectNextHops has those next hops of a route lead by the new device that led by the old one.
func redirectNextHops(r *netlink.Route, from, to netlink.Link) {
	const dead = unix.RTNH_F_LINKDOWN | unix.RTNH_F_DEAD
	for _, hop := range r.MultiPath {
		if hop.Flags &^= dead; hop.LinkIndex == from.Attrs().Index {
			hop.LinkIndex = to.Attrs().Index
		}
	}
	if r.Flags &^= dead; r.LinkIndex == from.Attrs().Index {
		r.LinkIndex = to.Attrs().Index
	}
}

// keepExpiry: a route that the kernel has from RA on the old device ends as it would have, unless RA on the new one
// renews it. Any other route has no end on the new device, where nobody renews it.
func keepExpiry(r *netlink.Route, from, to netlink.Link) error {
	accepted, err := ipv6Setting(from, "accept_ra")
	if err != nil {
		return err
	}
	if r.Protocol != unix.RTPROT_RA || accepted == "" || accepted == "0" {
		r.Expires = 0
		return nil
	}
	return takeRA(to)
}

// keepTakingRA has the new device take router advertisements where the old one does, though none has come yet. A kernel
// that forwards takes them only with accept_ra=2 (ip-sysctl, Linux), and by the bridge it is going to forward.
func keepTakingRA(from, to netlink.Link) error {
	accepted, err := ipv6Setting(from, "accept_ra")
	if err != nil {
		return err
	}
	forwards, err := ipv6Setting(from, "forwarding")
	if err != nil {
		return err
	}
	if accepted == "2" || accepted == "1" && forwards == "0" {
		return takeRA(to)
	}
	return nil
}

func takeRA(link netlink.Link) error {
	if err := os.WriteFile(ipv6SettingPath(link, "accept_ra"), []byte("2"), 0o644); err != nil {
		return fmt.Errorf("have %s take router advertisements: %w", link.Attrs().Name, err)
	}
	return nil
}

// ipv6Setting is a number of a link; "" without IPv6.
func ipv6Setting(link netlink.Link, key string) (string, error) {
	text, err := os.ReadFile(ipv6SettingPath(link, key))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read how %s is set: %w", link.Attrs().Name, err)
	}
	return strings.TrimSpace(string(text)), nil
}

func ipv6SettingPath(link netlink.Link, key string) string {
	return "/proc/sys/net/ipv6/conf/" + link.Attrs().Name + "/" + key
}

func viaOrder(r netlink.Route) int {
	if len(r.MultiPath) == 0 && (r.Gw == nil || r.Gw.Equal(net.IPv4zero)) {
		return 0
	}
	return 1
}
