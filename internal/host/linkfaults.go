package host

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/route"
	"github.com/egret-net/egret/internal/world"
)

// linkFaults are what keeps a link from hosting egress IPs, by family, and what to do; "" if nothing does.
func linkFaults(h route.Host, c *world.Config, l route.Link) [2]string {
	both := cmp.Or(linkDownReason(h, l), tableOfOthers(h, l))
	return [2]string{
		world.V4: cmp.Or(both, doesNotForward(l), ruleInTheWay(h, c, l, world.V4)),
		world.V6: cmp.Or(both, ruleInTheWay(h, c, l, world.V6)),
	}
}

func linkDownReason(h route.Host, l route.Link) string {
	vrf, enslaved := h.Link(l.Master)
	switch {
	case !l.Up:
		return fmt.Sprintf("link %[1]s is down: ip link set %[1]s up", l.Name)
	case !l.Carrier:
		return fmt.Sprintf("link %s has no carrier: look at its cable, or at what it is plugged into", l.Name)
	case enslaved && !vrf.Up:
		return fmt.Sprintf("VRF %[1]s of link %[2]s is down: ip link set %[1]s up", vrf.Name, l.Name)
	}
	return ""
}

// doesNotForward is of IPv4: IPv6 has one setting for all links. sysctl(8) wants a slash for a dot within a link's
// name.
func doesNotForward(l route.Link) string {
	if l.Forwards {
		return ""
	}
	return fmt.Sprintf("link %s does not forward IPv4, so that no reply would reach a pod: sysctl -w %s=1",
		l.Name, plan.LinkSetting(l.Name, "forwarding"))
}

// tableOfOthers looks for somebody else's use of the link's own table: our routes there would lead astray what is not
// ours.
func tableOfOthers(h route.Host, l route.Link) string {
	table := plan.LinkTable(l.Index)
	for _, v := range h.Links {
		if v.Kind == "vrf" && v.Table == table {
			return fmt.Sprintf("VRF %s has routing table %d, which egress IPs on link %s need: give the VRF another",
				v.Name, table, l.Name)
		}
	}
	if slices.ContainsFunc(h.Routes, func(r route.Route) bool { return r.Table == table && !r.Ours }) {
		return fmt.Sprintf("routing table %d, which egress IPs on link %s need, has routes of somebody else (ip "+
			"route show table %[1]d): use another table for them", table, l.Name)
	}
	return ""
}

// ruleInTheWay looks for a rule of somebody else that comes before the link's own, be that there or not, and takes
// packets of pods elsewhere: the leak filter of links would drop them.
func ruleInTheWay(h route.Host, c *world.Config, l route.Link, f world.Family) string {
	mark, own := plan.LinkMark(l.Index), plan.RuleEgressIP.Priority()
	for _, r := range h.Rules {
		switch {
		case r.V6 != (f == world.V6):
		case r.Priority > own || r.Ours && r.Priority == own && r.Mark == mark:
			return ""
		case !r.Ours && mayMatch(r, mark, c.Cluster(f)) && leadsAway(h, l, r, f):
			return fmt.Sprintf("rule %d (ip -%s rule show pref %d) would take elsewhere what pods send by link %s: "+
				"give it a priority above %d",
				r.Priority, f.String()[1:], r.Priority, l.Name, own)
		}
	}
	return ""
}

// mayMatch says whether a rule is for packets with a mark that come from pods. Those are forwarded: the kernel asks for
// their way by no device yet.
func mayMatch(r route.Rule, mark uint32, cluster []netip.Prefix) bool {
	from := !r.Src.IsValid() || slices.ContainsFunc(cluster, r.Src.Overlaps)
	to := !slices.ContainsFunc(cluster, func(p netip.Prefix) bool {
		return r.Dst.IsValid() && p.Bits() <= r.Dst.Bits() && p.Overlaps(r.Dst)
	})
	by := r.Oif == "" && (r.Iif == "" || plan.IsManagementPort(r.Iif))
	return r.Not || from && to && by && (r.Mark^mark)&r.Mask == 0
}

// leadsAway says whether what a rule is for goes by another way than the link. One that finds a route for some of it
// only, as those of VPNs do, does not count: pods cannot reach that much, and all else.
func leadsAway(h route.Host, l route.Link, r route.Rule, f world.Family) bool {
	switch {
	case r.Goto > 0:
		return r.Goto > plan.RuleEgressIP.Priority()
	case r.Table == 0: // the kernel's own for VRFs' links asks for nothing else; others drop
		return r.Not || r.Mask != 0 || r.Iif != "" || r.Src.IsValid() || r.Dst.IsValid()
	}
	to := r.Dst
	if !to.IsValid() {
		to = f.All()
	}
	found, ok := h.LookUp(r, to)
	return ok && found.Dev != l.Name
}
