package route

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Host is what a network namespace has, ours and others': facts of the world. All lists but Rules are sorted.
type Host struct {
	Links  []Link    // by name
	Addrs  []Address // by link and prefix
	Routes []Route   // by table, destination and metric; none of table local
	Rules  []Rule    // IPv4's first; in the order in which the kernel goes through them
	// Refusals are routes of type unreachable, prohibit or blackhole, in the order of Routes.
	Refusals []Route
	// Ours is what carries a mark of ours, and the host's settings of forwarding, as text: it changes when somebody
	// takes some of it away.
	Ours []string
}

// Link is a network interface. Kind is the kernel's ("veth", "bridge", "vrf"; "device" for hardware), Master the name
// of the bridge, bond or VRF that it is in, or "".
type Link struct {
	Name   string
	Index  int
	MAC    string // "" for links without
	Up     bool   // administratively
	MTU    int
	Kind   string
	Master string
	// Carrier: the other end is up as well.
	Carrier bool
	// Table is the routing table that packets of the link are looked up in: a VRF's, or main's (254).
	Table int
	// Forwards: IPv4 packets that come in are passed on. IPv6 has one such setting for all links
	// (net.ipv6.conf.all.forwarding).
	Forwards bool
}

// Address is an address of a link, with the prefix length it is configured with.
type Address struct {
	Dev        string
	Prefix     netip.Prefix
	Deprecated bool // the kernel does not pick it as a source (RFC 4862 5.5.4)
	Tentative  bool // duplicate address detection has not ended well, or not yet
	Ours       bool // carries AddrProtocol or AddrMetric
	Local      bool // its scope is its link, its site or this host, not the universe (ip-address(8))
	// Secondary: of IPv4, another address of its link and subnet is older, and the kernel picks that (IFA_F_SECONDARY).
	// Of IPv6 it is temporary (RFC 8981), which the kernel says by the same bit.
	Secondary bool
	// Rank is its place among the kernel's addresses of its family and link, from the one that was configured first.
	Rank int
}

// Route is a unicast route. Of a route with several nexthops there is one for each.
type Route struct {
	Table  int
	Dst    netip.Prefix
	Via    netip.Addr // zero: on link; an IPv4 route's may be of IPv6
	Dev    string
	Src    netip.Addr
	Metric int
	MTU    int  // 0: the link's
	Ours   bool // carries Protocol
	OnLink bool // Via is reached by Dev, though no route says so
	Dead   bool // the kernel sends nothing by it: Dev is down or has no carrier
}

// DefaultRoutes returns the next hops of that family's default route by devices that by is true of: those of the main
// table with the least metric, of which the kernel gives each its share; dead ones only where all are.
func (h Host) DefaultRoutes(v6 bool, by func(dev string) bool) []Route {
	var all []Route
	for _, r := range h.Routes { // by metric
		isDefault := r.Table == unix.RT_TABLE_MAIN && r.Dst.Bits() == 0 && r.Dst.Addr().Is6() == v6 && by(r.Dev)
		if isDefault && (len(all) == 0 || r.Metric == all[0].Metric) {
			all = append(all, r)
		}
	}
	dead := func(r Route) bool { return r.Dead }
	if live := slices.DeleteFunc(slices.Clone(all), dead); len(live) > 0 {
		return live
	}
	return all
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
	n, err := openSocket()
	if err != nil {
		return Host{}, err
	}
	defer n.Close()
	links, err := n.LinkList()
	if err != nil {
		return Host{}, fmt.Errorf("list links: %w", err)
	}
	addrs, err := readAddrs()
	if err != nil {
		return Host{}, fmt.Errorf("list addresses: %w", err)
	}
	routes, rules, err := listRoutes(n)
	if err != nil {
		return Host{}, err
	}
	name := map[int]string{}
	for _, l := range links {
		name[l.Attrs().Index] = l.Attrs().Name
	}
	h := Host{Links: hostLinks(links, name), Addrs: hostAddrs(addrs, name), Routes: hostRoutes(routes, name),
		Refusals: hostRefusals(routes), Rules: hostRules(rules)}
	h.Ours = h.ourRows(rules)
	return h, ctx.Err()
}

func readAddrs() ([]kernelAddr, error) {
	s, err := openAddrSocket()
	if err != nil {
		return nil, err
	}
	defer s.closeSocket()
	return s.listAddrs()
}

func listRoutes(n *netlink.Handle) (routes []netlink.Route, rules []netlink.Rule, err error) {
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		r, err := n.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
		if err != nil {
			return nil, nil, fmt.Errorf("list routes: %w", err)
		}
		u, err := listRules(n, family)
		if err != nil {
			return nil, nil, fmt.Errorf("list rules: %w", err)
		}
		routes, rules = append(routes, r...), append(rules, u...)
	}
	return routes, rules, nil
}

// listRules returns no rules where the kernel was booted without the family (ipv6.disable=1). For rules the kernel then
// returns an error, for routes an empty list.
func listRules(n *netlink.Handle, family int) ([]netlink.Rule, error) {
	rules, err := n.RuleList(family)
	if errors.Is(err, unix.EAFNOSUPPORT) {
		return nil, nil
	}
	return rules, err
}

func (h Host) ourRows(rules []netlink.Rule) []string {
	var out []string
	for _, a := range h.Addrs {
		if a.Ours {
			out = append(out, fmt.Sprint("addr ", a.Dev, " ", a.Prefix))
		}
	}
	for _, r := range h.Routes {
		if r.Ours {
			out = append(out, fmt.Sprint("route ", r.Table, " ", r.Dst, " ", r.Dev, " ", r.Via))
		}
	}
	for _, r := range rules {
		if r.Protocol == Protocol {
			out = append(out, fmt.Sprint("rule ", r.Family, " ", r))
		}
	}
	for _, ip := range []string{"ipv4", "ipv6"} {
		out = append(out, fmt.Sprint("forwarding ", ip, " ", isForwarding(ip, "all")))
	}
	slices.Sort(out)
	return out
}

func hostLinks(links []netlink.Link, name map[int]string) []Link {
	vrfs := map[int]int{} // table by index
	for _, l := range links {
		if v, ok := l.(*netlink.Vrf); ok {
			vrfs[v.Index] = int(v.Table)
		}
	}
	var all []Link
	for _, l := range links {
		a := l.Attrs()
		all = append(all, Link{
			Name: a.Name, Index: a.Index, MAC: a.HardwareAddr.String(), Up: a.Flags&net.FlagUp != 0, MTU: a.MTU,
			Kind: l.Type(), Master: name[a.MasterIndex],
			Carrier: a.RawFlags&unix.IFF_LOWER_UP != 0, Table: cmp.Or(vrfs[a.Index], vrfs[a.MasterIndex],
				unix.RT_TABLE_MAIN), Forwards: isForwarding("ipv4", a.Name),
		})
	}
	slices.SortFunc(all, func(a, b Link) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

func hostAddrs(addrs []kernelAddr, name map[int]string) []Address {
	var all []Address
	for i, a := range addrs {
		rank := i
		if a.prefix.Addr().Is6() {
			// the kernel puts an IPv6 address before those of its scope (ipv6_link_dev_addr, Linux 2.6.13 and later)
			rank = len(addrs) - i
		}
		all = append(all, Address{
			Dev: name[a.link], Prefix: a.prefix, Deprecated: a.isDeprecated(),
			Tentative: a.flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) != 0,
			Ours:      a.isOurs(), Local: a.scope != unix.RT_SCOPE_UNIVERSE,
			Secondary: a.flags&unix.IFA_F_SECONDARY != 0, Rank: rank,
		})
	}
	slices.SortFunc(all, func(a, b Address) int {
		return cmp.Or(cmp.Compare(a.Dev, b.Dev), a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(),
			b.Prefix.Bits()))
	})
	return all
}

// isForwarding reads the setting of a link that may be gone by now.
func isForwarding(ip, link string) bool {
	b, err := os.ReadFile("/proc/sys/net/" + ip + "/conf/" + link + "/forwarding")
	return err == nil && strings.TrimSpace(string(b)) == "1"
}

// hostRoutes leaves out next hops that put packets into a tunnel of the route's own (encap): a Route does not say
// which.
func hostRoutes(routes []netlink.Route, name map[int]string) []Route {
	var all []Route
	for _, r := range routes {
		if r.Type != unix.RTN_UNICAST || r.Table == unix.RT_TABLE_LOCAL {
			continue
		}
		dst, ok := fromIPNet(r.Dst)
		if !ok {
			dst = defaultPrefix(r.Family)
		}
		m := Route{Table: r.Table, Dst: dst, Src: fromIP(r.Src), Metric: r.Priority, MTU: r.MTU,
			Ours: int(r.Protocol) == Protocol}
		for _, hop := range nextHops(r) {
			m.Via, m.Dev, m.OnLink = nextHop(hop.Gw, hop.Via), name[hop.LinkIndex], onLink(hop.Flags)
			m.Dead = hop.Flags&(unix.RTNH_F_DEAD|unix.RTNH_F_LINKDOWN) != 0
			if hop.Encap == nil {
				all = append(all, m)
			}
		}
	}
	slices.SortFunc(all, compareRoutes)
	return all
}

func compareRoutes(a, b Route) int {
	return cmp.Or(cmp.Compare(a.Table, b.Table), a.Dst.Addr().Compare(b.Dst.Addr()), cmp.Compare(a.Dst.Bits(),
		b.Dst.Bits()), cmp.Compare(a.Metric, b.Metric),
		cmp.Compare(a.Dev, b.Dev), a.Via.Compare(b.Via))
}

func hostRefusals(routes []netlink.Route) []Route {
	var all []Route
	for _, r := range routes {
		if r.Table == unix.RT_TABLE_LOCAL || !slices.Contains(refusing[:], r.Type) {
			continue
		}
		dst, ok := fromIPNet(r.Dst)
		if !ok {
			dst = defaultPrefix(r.Family)
		}
		all = append(all, Route{Table: r.Table, Dst: dst, Metric: r.Priority, Ours: int(r.Protocol) == Protocol})
	}
	slices.SortFunc(all, compareRoutes)
	return all
}

var refusing = [...]int{unix.RTN_UNREACHABLE, unix.RTN_PROHIBIT, unix.RTN_BLACKHOLE}

func nextHops(r netlink.Route) []*netlink.NexthopInfo {
	if len(r.MultiPath) > 0 {
		return r.MultiPath
	}
	return []*netlink.NexthopInfo{{LinkIndex: r.LinkIndex, Gw: r.Gw, Via: r.Via, Flags: r.Flags, Encap: r.Encap}}
}
