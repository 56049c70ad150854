package trace

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/plan"
)

// uplink is the link by which packets leave that no rule of ours routes elsewhere.
const uplink = "uplink"

// enterHost is the kernel of a node, for a new packet that comes in by a link: out of its management port, or from
// outside.
func (w walker) enterHost() []End {
	w.mark, w.ctMark, w.translated, w.oif = 0, 0, false, ""
	w.asked, w.began = netip.AddrPortFrom(w.p.Dst, w.p.DstPort), w.p.Src
	return w.receiveOnHost()
}

// receiveOnHost is a packet on its way in, to a process of the host or on to another link.
func (w walker) receiveOnHost() []End {
	return w.passHook("ingress", func(w walker) []End {
		return w.passHook("prerouting", func(w walker) []End {
			if w.isForHost() {
				return w.passHook("input", func(w walker) []End { return w.endWith(ToHost, "") })
			}
			if w = w.routeByRules(); w.oif == "" {
				return w.endWith(Dropped, "no route on the host")
			}
			return w.passHook("forward", walker.outOfHost)
		})
	})
}

// isForHost says whether the packet is for the host itself.
func (w walker) isForHost() bool { return w.ownZone().local[w.p.Dst] != "" }

// outOfHost is the way of a packet that has been routed.
func (w walker) outOfHost() []End { return w.passHook("postrouting", walker.leaveHost) }

func (w walker) leaveHost() []End {
	switch w.oif {
	case uplink:
		return w.enterBridge("LOCAL")
	case loopback:
		w.iif, w.translated = loopback, true // conntrack has the connection
		return w.receiveOnHost()
	case w.names.ManagementPort():
		w.inport = w.names.HostPort(w.node)
		return w.nodeSwitch()
	}
	return w.arriveOutside()
}

// routeByRules finds the link by the policy routing rules of ours.
func (w walker) routeByRules() walker {
	var rules []plan.Rule
	for r := range w.ownZone().state.Rules.Rows() {
		if r.V6 == w.p.Src.Is6() && uint32(w.mark)&r.Mask == r.Mark && containsOrAny(r.Src, w.p.Src) &&
			containsOrAny(r.Dst, w.p.Dst) && (r.In == "" || r.In == w.iif) {
			rules = append(rules, r)
		}
	}
	slices.SortFunc(rules, func(a, b plan.Rule) int { return a.Priority - b.Priority })
	w.oif = uplink
	if dev, ok := w.longestRoute(plan.MainTable); ok {
		w.oif = dev
	}
	for _, r := range rules {
		dev, ok := w.findLink(r.Table)
		switch {
		case ok && dev == "":
			w.oif = ""
			return w.addStep("rule %s, where a route refuses it", r)
		case ok:
			w.oif = dev
			return w.addStep("rule %s, by %s", r, dev)
		case !w.hasTable(r.Table):
			w = w.addStep("rule %s, where it has no route", r)
		}
	}
	return w
}

// Lookup is the route that a table of the host's own has for a destination: the link that it leaves by, "" where the
// route refuses it.
type Lookup func(table int, to netip.Addr) (dev string, ok bool)

// Know has a node's own tables looked up. Of a node of which they are not known the walk takes it that they lead
// outside.
func (c *Cluster) Know(node string, tables Lookup) {
	if z := c.zones[node]; z != nil {
		known := *z
		known.tables = tables
		c.zones[node] = &known
	}
}

// findLink is the link by which a table leads to the destination.
func (w walker) findLink(table int) (dev string, ok bool) {
	switch dev, ok = w.longestRoute(table); {
	case !ok && table == plan.MainTable:
		return uplink, true
	case ok || w.hasTable(table):
		return dev, ok
	}
	tables := w.ownZone().tables
	if tables == nil {
		return fmt.Sprint("table ", table), true
	}
	if dev, ok = tables(table, w.p.Dst); dev != "" && dev == w.ownZone().bridge {
		dev = uplink
	}
	return dev, ok
}

// hasTable says whether a table is the plan's, with routes or without.
func (w walker) hasTable(table int) bool {
	if table == plan.ReplyTable {
		return true
	}
	for k := range w.ownZone().state.Routes.Rows() {
		if k.Table == table {
			return true
		}
	}
	return false
}

// longestRoute is the longest route of a table.
func (w walker) longestRoute(table int) (dev string, ok bool) {
	longest := -1
	for k, r := range w.ownZone().state.Routes.Rows() {
		if k.Table == table && k.Dst.Contains(w.p.Dst) && k.Dst.Bits() > longest {
			longest, dev = k.Dst.Bits(), r.Dev
		}
	}
	return dev, longest >= 0
}

// containsOrAny takes a zero prefix for all.
func containsOrAny(p netip.Prefix, a netip.Addr) bool { return !p.IsValid() || p.Contains(a) }

// linkAddress is the address that masquerading gives: the uplink's, which the gateway router shares, or the management
// port's. That of other links no plan tells; on the loopback the kernel takes the first link's.
func (w walker) linkAddress() netip.Addr {
	for a := range w.ownZone().state.Addrs.Rows() {
		if dev := w.names.ManagementPort(); a.Dev == dev && w.oif == dev && a.Prefix.Addr().Is4() == w.p.Src.Is4() {
			return a.Prefix.Addr()
		}
	}
	r := w.ownZone().routers[w.names.GatewayRouter(w.node)]
	if w.oif != uplink || r == nil {
		return netip.Addr{}
	}
	for _, p := range r.networks[w.names.GatewayToExternal(w.node)] {
		if p.Addr().Is4() == w.p.Src.Is4() {
			return p.Addr()
		}
	}
	return netip.Addr{}
}

// These are the conditions of rules on a packet on the host.

// outgoingLink is the name of the link by which the packet goes out.
func (w walker) outgoingLink() string {
	if w.oif == uplink {
		return w.ownZone().bridge
	}
	return w.oif
}

func (w walker) familyWord() string {
	if w.p.Src.Is4() {
		return "ipv4"
	}
	return "ipv6"
}

func (w walker) protocolWord() string {
	if w.p.Proto == "icmp" && w.p.Src.Is6() {
		return "ipv6-icmp"
	}
	return w.p.Proto
}

// sourceType is "local" for what the host itself sends (nft(8), fib), and else of no interest.
func (w walker) sourceType() string {
	if w.ownZone().local[w.p.Src] != "" {
		return "local"
	}
	return ""
}

func (w walker) connDirection() string {
	if w.p.Reply {
		return "reply"
	}
	return "original"
}

// connStatus is "dnat" for a connection that asks for another destination than it goes to, and else of no interest.
func (w walker) connStatus() string {
	if w.asked != netip.AddrPortFrom(w.p.Dst, w.p.DstPort) {
		return "dnat"
	}
	return ""
}

func (w walker) connState() string {
	if w.p.Reply {
		return "established"
	}
	return "new"
}
