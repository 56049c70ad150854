package egressservice

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Names in the host's kernel. The chain of translations has the seed's name.
const (
	chainMark      = "egress-service-mark"
	chainTranslate = "OVN-KUBE-EGRESS-SVC"
)

// LeakChain is the chain whose rules drop and count what would leave with another source than the Service's address.
const LeakChain = "egress-service-guard"

// kernel writes the rows of one EgressService and family in the host's kernel.
type kernel struct {
	egress.Host
	w  *world.View
	s  *world.EgressService
	by network
	// source is the address that this host translates to; zero with HostAll.
	source netip.Addr
}

func (k kernel) podSet() string { return hostPods(k.s, k.Family, k.source) }

// addMarkRules gives what pods begin by the management port their mark, which their connections keep, but not what goes
// to nodes, pods and Services. A connection that has another mark is of a former EgressService or table, or of none: it
// is not marked, and dropped as what has no mark (gateway.Firewall, egress.DropOnHost) until conntrack has ended it.
// That includes datagrams that nobody answers, each of which is new to conntrack: with a mark their connection is
// known.
func (k kernel) addMarkRules() {
	c, f := k.addChain(chainMark, plan.NFTChainSpec{Type: "filter", Hook: "prerouting", Priority: "-149"}), k.Family
	pods := k.podSet()
	k.AddSet(egress.HostNodeIPs(f))
	k.AddSet(pods)
	outside := fmt.Sprintf("iifname %q ct direction original %s saddr @%s %s daddr != @%s%s",
		plan.DefaultNames().ManagementPort(), k.IP(), pods, k.IP(), egress.HostNodeIPs(f),
		egress.NotTo(f, slices.Concat(k.w.Config.Cluster(f), k.serviceSubnets())))
	k.AddRule(c, k.rowName()+" new", "%s ct state new ct mark 0x0 meta mark set %#x ct mark set meta mark", outside,
		k.by.mark)
	k.AddRule(c, k.rowName()+" known", "%s ct mark %#x meta mark set %#x", outside, k.by.mark, k.by.mark)
}

// addRouteRules sends marked packets by the table; the kernel goes on to the main table with what that has no route to,
// as it does with the seed's rules. Rules are a table's, not a pod's. `from` the cluster's ranges: packets from outside
// carry the mark too, so that the check of their source uses the table, and must find pods and Services by the main
// one.
func (k kernel) addRouteRules() {
	if k.by.table.ID == 0 {
		return
	}
	rule := func(r plan.Rule) {
		r.Mark = k.by.mark
		k.RouteBy(r)
	}
	inside := slices.Concat(k.w.Config.Cluster(k.Family), k.serviceSubnets())
	for _, p := range append(inside, world.Single(k.w.Config.LocalOnly(k.Family))) {
		rule(plan.Rule{Priority: plan.RuleNetwork.Priority(), Table: int(k.by.table.ID), Src: p})
		if k.by.table.VRF { // the VRF's own rule would look for the pod in the VRF's table
			rule(plan.Rule{Priority: plan.RuleBeforeVRF.Priority(), Table: plan.MainTable, Dst: p})
		}
	}
	k.CheckByMark()
}

// addReplyMarks gives the mark of the table to what answers pods' connections, and to connections from outside to the
// Service, in both directions: its addresses and ports are told by what the connection asked for, whatever it was
// translated to.
func (k kernel) addReplyMarks() {
	if k.by.table.ID == 0 {
		return
	}
	c := k.addChain(chainMark, plan.NFTChainSpec{Type: "filter", Hook: "prerouting", Priority: "-149"})
	dev := plan.DefaultNames().ManagementPort()
	k.AddRule(c, fmt.Sprintf("reply %#x", k.by.mark), "iifname != %q ct direction reply ct mark %#x meta mark set ct mark",
		dev, k.by.mark)
	asked, answer := k.atFrontends()
	k.AddRule(c, k.rowName()+" asked", "iifname != %q ct direction original %s meta mark set %#x", dev, asked,
		k.by.mark)
	for name, from := range k.fromPods() {
		k.AddRule(c, k.rowName()+" answer"+name, "%s ct direction reply %s meta mark set %#x", from, answer, k.by.mark)
	}
}

// fromPods match what pods answer, as it comes into the host: by the management port; in shared gateway mode by the
// bridge from the gateway router, too, see package service, which gives it a source of its own.
func (k kernel) fromPods() map[string]string {
	out := map[string]string{"": fmt.Sprintf("iifname %q", plan.DefaultNames().ManagementPort())}
	if k.w.Config.GatewayMode == world.SharedGateway {
		out[" by bridge"] = fmt.Sprintf("iifname %q %s saddr %s", k.w.Config.Bridge, k.IP(),
			k.w.Config.LocalOnly(k.Family))
	}
	return out
}

// atFrontends match packets of connections from outside to the Service's frontends: those that ask, as they come in,
// and those that answer. Connections between nodes, with those of pods to node ports, are answered as without an
// EgressService.
func (k kernel) atFrontends() (asked, answer string) {
	set := "egressservice/" + egress.Short(k.s.Key()) + "/frontends." + k.Family.String()
	plan.Add(&k.Out.NFTSets, plan.NFTSet{Name: set}, plan.NFTSetSpec{
		Key: egress.AddrType(k.Family) + " . inet_proto . inet_service"})
	for _, f := range k.outsideFrontends() {
		key := fmt.Sprintf("%s . %s . %d", f.IP, f.Protocol, f.Port)
		plan.Add(&k.Out.NFTElems, plan.NFTElem{Set: set, Key: key}, "")
	}
	k.AddSet(egress.HostNodeIPs(k.Family))
	nodes := egress.HostNodeIPs(k.Family)
	return fmt.Sprintf("%s saddr != @%s %s daddr . meta l4proto . th dport @%s", k.IP(), nodes, k.IP(), set),
		fmt.Sprintf("ct original %s saddr != @%s ct original %s daddr . meta l4proto . ct original proto-dst @%s", k.IP(),
			nodes, k.IP(), set)
}

// outsideFrontends are the addresses and ports of the Service at which it is reached from outside.
func (k kernel) outsideFrontends() []world.Frontend {
	service := k.w.Service(k.s.Key())
	if service == nil {
		return nil
	}
	var out []world.Frontend
	for _, f := range service.Frontends() {
		at := []netip.Addr{f.IP}
		if !f.IP.IsValid() {
			at = k.w.Host().Addrs
		}
		if !k.w.IsFirst(f, k.s.Key()) || slices.Contains(service.ClusterIPs, f.IP) {
			continue
		}
		for _, ip := range k.Family.OfAddrs(at) {
			out = append(out, world.Frontend{IP: ip, Protocol: f.Protocol, Port: f.Port})
		}
	}
	return out
}

func (k kernel) serviceSubnets() []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(k.w.Config.ServiceSubnets), func(p netip.Prefix) bool {
		return world.FamilyOf(p.Addr()) != k.Family
	})
}

func (k kernel) rowName() string { return egress.Short(k.s.Key()) + " " + k.Family.String() }

func (k kernel) addChain(name string, spec plan.NFTChainSpec) plan.NFTChain {
	c := plan.NFTChain{Family: "inet", Name: name}
	plan.Add(&k.Out.NFTChains, c, spec)
	return c
}
