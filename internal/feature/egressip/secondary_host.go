package egressip

import (
	"fmt"
	"net/netip"

	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// kernel writes the rows of one link and family in the host's kernel. What is the link's, and not an EgressIP's, every
// EgressIP on it claims.
type kernel struct {
	config *world.Config
	family world.Family
	link   *world.Link
	out    *plan.Rows
}

// route copies the link's routes into a table of its own, and sends marked packets of pods there. `from` the cluster
// subnets: replies carry the mark too, and must find the pods by the main table. The rule for node addresses is the
// seed's.
func (k kernel) route() {
	v6, table := k.family == world.V6, plan.LinkTable(k.link.Index)
	rule := func(r plan.Rule) {
		r.V6, r.Mask = v6, everyBit
		plan.Claim(&k.out.Rules, r, plan.None{})
	}
	for _, c := range k.config.Cluster(k.family) {
		rule(plan.Rule{Priority: plan.RuleEgressIP.Priority(), Table: table, Mark: linkMark(k.link), Src: c})
		if k.link.VRF != "" { // the VRF's own rule would look for the pod in the VRF's table
			rule(plan.Rule{Priority: plan.RuleBeforeVRF.Priority(), Table: plan.MainTable,
				Mark: linkMark(k.link), Dst: c})
		}
	}
	rule(plan.Rule{Priority: plan.RuleNodeIP.Priority(), Table: plan.MainTable, Mark: plan.MarkNodeIP})
	plan.Claim(&k.out.Routes, plan.RouteKey{Table: table, Dst: k.family.All()}, plan.Route{Dev: k.link.Name})
	for _, r := range k.link.Routes {
		if world.FamilyOf(r.Dst.Addr()) == k.family {
			plan.Claim(&k.out.Routes, plan.RouteKey{Table: table, Dst: r.Dst}, plan.Route{Dev: k.link.Name, Via: r.Via,
				MTU: r.MTU, OnLink: r.OnLink})
		}
	}
	if k.family == world.V4 {
		// The check of a reply's source looks up the way back with the connection's mark: strict rp_filter finds the
		// link, too.
		plan.Claim(&k.out.Sysctls, plan.Sysctl{Key: "net.ipv4.conf.all.src_valid_mark"}, "1")
	}
}

// mark gives packets that pods send by the management port the link's mark, whatever they had before, and replies that
// of their connection. To nodes and pods nothing is marked, nor what answers a connection from outside.
func (k kernel) mark(e *world.EgressIP) {
	c := k.out.AddChain(plan.ChainEgressIPMark)
	egress.AddHostNodeIPs(k.family, k.out)
	pods := allPods.hostSet(e, k.family)
	plan.Claim(&k.out.NFTSets, plan.NFTSet{Name: pods}, plan.NFTSetSpec{Key: egress.AddrType(k.family)})
	k.rule(c, namePrefix+egress.Short(e.Name)+"/"+k.family.String(),
		"iifname %q ct direction original %s saddr @%s%s %s daddr != @%s%s meta mark set %#x ct mark set meta mark",
		plan.DefaultNames().ManagementPort(), k.ip(), pods, hostOnlyTo(e, k.family),
		k.ip(), egress.HostNodeIPs(k.family), egress.NotTo(k.family, k.config.Cluster(k.family)), linkMark(k.link))
	k.rule(c, "reply "+k.link.Name, "iifname %q ct direction reply ct mark %#x meta mark set ct mark", k.link.Name,
		linkMark(k.link))
}

// translate is one rule an address.
func (k kernel) translate(e *world.EgressIP, ip netip.Addr) {
	c := k.out.AddChain(plan.ChainEgressIPTranslate)
	k.rule(c, natRow(egress.Short(e.Name), ip), "meta mark %#x oifname %q %s saddr @%s%s snat %s to %s",
		linkMark(k.link), k.link.Name, k.ip(), allPods.hostSet(e, k.family), hostOnlyTo(e, k.family), k.ip(), ip)
}

// filterLeaks drops packets of connections with the mark that would leave by another link or with another source: the
// masquerading of local gateway mode comes between, and a connection keeps the source that it began with. The
// connection's mark, not the packet's: a reply keeps its own when OVS' kernel datapath puts it into a tunnel, and the
// tunnel's packets are none of this. Nobody listens at an egress IP: the host would end connections that moved here
// with RST.
func (k kernel) filterLeaks(ip netip.Addr) {
	set := linkIPs(k.link, k.family)
	plan.Claim(&k.out.NFTSets, plan.NFTSet{Name: set}, plan.NFTSetSpec{Key: egress.AddrType(k.family)})
	plan.Claim(&k.out.NFTElems, plan.NFTElem{Set: set, Key: ip.String()}, "")
	c := k.out.AddChain(plan.ChainEgressIPGuard)
	name := fmt.Sprintf("%s %s", k.link.Name, k.family)
	k.rule(c, name+" elsewhere", "ct mark %#x ct direction original %s oifname != %q counter drop", linkMark(k.link),
		k.isFamily(), k.link.Name)
	k.rule(c, name+" source", "ct mark %#x ct direction original %s saddr != @%s counter drop", linkMark(k.link),
		k.ip(), set)
	for _, p := range k.config.Cluster(k.family) {
		k.rule(c, name+" untranslated "+p.String(), "oifname %q %s saddr %s counter drop", k.link.Name, k.ip(), p)
	}
	in := k.out.AddChain(plan.ChainEgressIPInput)
	k.rule(in, name, "%s daddr @%s meta l4proto != %s counter drop", k.ip(), set, [...]string{"icmp",
		"ipv6-icmp"}[k.family])
}

// isFamily keeps the rules of the two families apart in a table of both.
func (k kernel) isFamily() string { return "meta nfproto " + [...]string{"ipv4", "ipv6"}[k.family] }

func (k kernel) ip() string { return [...]string{"ip", "ip6"}[k.family] }

func (k kernel) rule(c plan.NFTChain, name, format string, args ...any) {
	plan.Claim(&k.out.NFTRules, plan.NFTRule{Chain: c, Name: name}, fmt.Sprintf(format, args...))
}
