package route

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
)

// Rule is a policy routing rule (ip-rule(8)). Of Src, Dst, Mask, Iif and Oif, what is zero asks for nothing. Other
// conditions of a rule, as on ports, are not said.
type Rule struct {
	V6         bool
	Priority   int
	Src, Dst   netip.Prefix
	Mark, Mask uint32
	Iif, Oif   string
	Not        bool // the rule is for what does not match
	// Table is looked up; 0: none, as of a rule that drops packets, and of the kernel's own for VRFs.
	Table int
	// Shortest is the length that a route's destination must have to be found.
	Shortest int
	// Goto is the priority of the rule to go on with; 0: none.
	Goto int
	Ours bool // carries Protocol
}

// hostRules leaves out rules for packets of users and of tunnels: packets that the host forwards between its links have
// neither.
func hostRules(rules []netlink.Rule) []Rule {
	var all []Rule
	for _, r := range rules {
		if r.UIDRange != nil || r.TunID != 0 {
			continue
		}
		rule := Rule{
			V6: r.Family == netlink.FAMILY_V6, Priority: r.Priority, Mark: r.Mark, Iif: r.IifName, Oif: r.OifName,
			Not: r.Invert, Table: r.Table,
			Shortest: r.SuppressPrefixlen + 1, Goto: max(r.Goto, 0), Ours: r.Protocol == Protocol,
		}
		if r.Mask != nil {
			rule.Mask = *r.Mask
		}
		rule.Src, _ = fromIPNet(r.Src)
		rule.Dst, _ = fromIPNet(r.Dst)
		all = append(all, rule)
	}
	return all
}

// Route is the link by which a table leads to an address; "" where a route refuses it, or goes by no link. The kernel
// goes on to the next rule where the table has no route.
func (h Host) Route(table int, to netip.Addr) (dev string, ok bool) {
	one := netip.PrefixFrom(to, to.BitLen())
	found, ok := Host{Routes: liveRoutes(h.Routes)}.LookUp(Rule{Table: table}, one)
	refusal, refused := Host{Routes: h.Refusals}.LookUp(Rule{Table: table}, one)
	if refused && (!ok || cmp.Or(cmp.Compare(refusal.Dst.Bits(), found.Dst.Bits()),
		cmp.Compare(found.Metric, refusal.Metric)) > 0) {
		return "", true
	}
	return found.Dev, ok
}

func liveRoutes(routes []Route) []Route {
	return slices.DeleteFunc(slices.Clone(routes), func(r Route) bool { return r.Dead })
}

// LookUp is the unicast route that a rule finds for the whole of a prefix.
func (h Host) LookUp(r Rule, to netip.Prefix) (found Route, ok bool) {
	for _, x := range h.Routes { // of one destination, the best is first
		if x.Table == r.Table && x.Dst.Bits() >= r.Shortest && x.Dst.Bits() <= to.Bits() && x.Dst.Contains(to.Addr()) &&
			(!ok || x.Dst.Bits() > found.Dst.Bits()) {
			found, ok = x, true
		}
	}
	return found, ok
}
