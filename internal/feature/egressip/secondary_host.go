package egressip

import (
	"fmt"
	"net/netip"

	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// kernel writes the rows of one link and family in the host's kernel. Every EgressIP on a link claims the rows that are
// the link's.
type kernel struct {
	egress.Host
	config *world.Config
	link   *world.Link
	fwmark uint32 // the link's
}

// addRoutes copies the link's routes into a table of its own, and sends marked packets of pods there. `from` the cluster
// subnets: replies carry the mark too, and must find the pods by the main table. The rule for node addresses is the
// seed's.
func (k kernel) addRoutes() {
	table := plan.LinkTable(k.link.Index)
	for _, c := range k.config.Cluster(k.Family) {
		k.RouteBy(plan.Rule{Priority: plan.RuleEgressIP.Priority(), Table: table, Mark: k.fwmark, Src: c})
		if k.link.VRF != "" { // the VRF's own rule would look for the pod in the VRF's table
			k.RouteBy(plan.Rule{Priority: plan.RuleBeforeVRF.Priority(), Table: plan.MainTable, Mark: k.fwmark, Dst: c})
		}
	}
	k.RouteBy(plan.Rule{Priority: plan.RuleNodeIP.Priority(), Table: plan.MainTable, Mark: plan.MarkNodeIP})
	plan.Add(&k.Out.Routes, plan.RouteKey{Table: table, Dst: k.Family.All()}, plan.Route{Dev: k.link.Name})
	for _, r := range k.link.Routes {
		if world.FamilyOf(r.Dst.Addr()) == k.Family {
			plan.Add(&k.Out.Routes, plan.RouteKey{Table: table, Dst: r.Dst}, plan.Route{Dev: k.link.Name, Via: r.Via,
				MTU: r.MTU, OnLink: r.OnLink})
		}
	}
	k.CheckByMark()
}

// addMarkRules gives packets that pods send by the management port the link's mark, whatever they had before, and
// replies that of their connection. To nodes and pods nothing is marked, nor what answers a connection from outside.
func (k kernel) addMarkRules(e *world.EgressIP, ip netip.Addr) {
	c := k.Out.AddChain(plan.ChainEgressIPMark)
	pods := translatedPods(e, ip)
	k.AddSet(egress.HostNodeIPs(k.Family))
	k.AddSet(pods)
	k.AddRule(c, namePrefix+egress.Short(e.Name)+"/"+k.Family.String(),
		"iifname %q ct direction original %s saddr @%s%s %s daddr != @%s%s meta mark set %#x ct mark set meta mark",
		plan.DefaultNames().ManagementPort(), k.IP(), pods, hostOnlyTo(e, k.Family),
		k.IP(), egress.HostNodeIPs(k.Family), egress.NotTo(k.Family, k.config.Cluster(k.Family)), k.fwmark)
	k.AddRule(c, "reply "+k.link.Name, "iifname %q ct direction reply ct mark %#x meta mark set ct mark", k.link.Name,
		k.fwmark)
}

// addTranslation is one rule an address.
func (k kernel) addTranslation(e *world.EgressIP, ip netip.Addr) {
	c := k.Out.AddChain(plan.ChainEgressIPTranslate)
	k.AddRule(c, natRow(egress.Short(e.Name), ip), "meta mark %#x oifname %q %s saddr @%s%s snat %s to %s",
		k.fwmark, k.link.Name, k.IP(), translatedPods(e, ip), hostOnlyTo(e, k.Family), k.IP(), ip)
}

// filterLeaks drops packets of connections with the mark that would leave by another link or with another source: the
// masquerading of local gateway mode comes between, and a connection keeps the source that it began with. The
// connection's mark, not the packet's: a reply keeps its own when OVS' kernel datapath puts it into a tunnel, and the
// tunnel's packets must not have it. Nobody listens at an egress IP: the host would end connections that moved here
// with RST.
func (k kernel) filterLeaks(ip netip.Addr) {
	set := fmt.Sprintf("egress-ips/%d.%s", k.link.Index, k.Family)
	k.AddSet(set)
	plan.Add(&k.Out.NFTElems, plan.NFTElem{Set: set, Key: ip.String()}, "")
	c := k.Out.AddChain(plan.ChainEgressIPGuard)
	name := fmt.Sprintf("%s %s", k.link.Name, k.Family)
	k.AddRule(c, name+" elsewhere", "ct mark %#x ct direction original %s oifname != %q counter drop", k.fwmark,
		k.isFamily(), k.link.Name)
	k.AddRule(c, name+" source", "ct mark %#x ct direction original %s saddr != @%s counter drop", k.fwmark,
		k.IP(), set)
	for _, p := range k.config.Cluster(k.Family) {
		k.AddRule(c, name+" untranslated "+p.String(), "oifname %q %s saddr %s counter drop", k.link.Name, k.IP(), p)
	}
	in := k.Out.AddChain(plan.ChainEgressIPInput)
	k.AddRule(in, name, "%s daddr @%s meta l4proto != %s counter drop", k.IP(), set, [...]string{"icmp",
		"ipv6-icmp"}[k.Family])
}

// isFamily keeps the rules of the two families apart in a table of both.
func (k kernel) isFamily() string { return "meta nfproto " + [...]string{"ipv4", "ipv6"}[k.Family] }
