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

const everyBit = 0xffffffff

// kernel writes the rows of one EgressService and family in the host's kernel.
type kernel struct {
	w      *world.View
	s      *world.EgressService
	family world.Family
	by     network
	out    *plan.Rows
}

// mark gives what pods begin by the management port their mark, which their connections keep, but not what goes to
// nodes, pods and Services. A connection that has another mark is of a former EgressService or table, or of none: it is
// not marked, and dropped as what has no mark (gateway.Firewall, egress.DropOnHost) until conntrack has ended it. That
// includes datagrams that nobody answers, each of which is new to conntrack: with a mark their connection is known.
func (k kernel) mark() {
	c, f := k.chain(chainMark, plan.NFTChainSpec{Type: "filter", Hook: "prerouting", Priority: "-149"}), k.family
	pods := hostPods(k.s, f)
	egress.AddHostNodeIPs(f, k.out)
	plan.Claim(&k.out.NFTSets, plan.NFTSet{Name: pods}, plan.NFTSetSpec{Key: egress.AddrType(f)})
	outside := fmt.Sprintf("iifname %q ct direction original %s saddr @%s %s daddr != @%s%s",
		plan.DefaultNames().ManagementPort(), k.ip(), pods, k.ip(), egress.HostNodeIPs(f),
		egress.NotTo(f, slices.Concat(k.w.Config.Cluster(f), k.services())))
	k.rule(c, k.name()+" new", "%s ct state new ct mark 0x0 meta mark set %#x ct mark set meta mark", outside,
		k.by.mark)
	k.rule(c, k.name()+" known", "%s ct mark %#x meta mark set %#x", outside, k.by.mark, k.by.mark)
}

// route sends marked packets by the table, and nowhere else: what it has no route to is unreachable. Rules are a
// table's, not a pod's. `from` the cluster's ranges: what comes in from outside carries the mark too, so that the check
// of its source looks by the table, and must find pods and Services by the main one.
func (k kernel) route() {
	if k.by.table.ID == 0 {
		return
	}
	rule := func(r plan.Rule) {
		r.V6, r.Mark, r.Mask = k.family == world.V6, k.by.mark, everyBit
		plan.Claim(&k.out.Rules, r, plan.None{})
	}
	inside := slices.Concat(k.w.Config.Cluster(k.family), k.services())
	for _, p := range append(inside, world.Single(k.w.Config.LocalOnly(k.family))) {
		rule(plan.Rule{Priority: plan.RuleNetwork.Priority(), Table: int(k.by.table.ID), Src: p})
		rule(plan.Rule{Priority: plan.RuleNoNetwork.Priority(), Unreachable: true, Src: p})
		if k.by.table.VRF { // the VRF's own rule would look for the pod in the VRF's table
			rule(plan.Rule{Priority: plan.RuleBeforeVRF.Priority(), Table: plan.MainTable, Dst: p})
		}
	}
	if k.family == world.V4 { // it stays when the rules go: docs/egress-service.md says why, and whom it concerns
		plan.Claim(&k.out.Sysctls, plan.Sysctl{Key: "net.ipv4.conf.all.src_valid_mark"}, "1")
	}
}

// replies gives the mark of the table to what answers pods' connections, and to connections from outside to the
// Service, in both directions: its addresses and ports are told by what the connection asked for, whatever it was
// translated to.
func (k kernel) replies() {
	if k.by.table.ID == 0 {
		return
	}
	c := k.chain(chainMark, plan.NFTChainSpec{Type: "filter", Hook: "prerouting", Priority: "-149"})
	dev := plan.DefaultNames().ManagementPort()
	k.rule(c, fmt.Sprintf("reply %#x", k.by.mark), "iifname != %q ct direction reply ct mark %#x meta mark set ct mark",
		dev, k.by.mark)
	asked, answer := k.atFrontends()
	k.rule(c, k.name()+" asked", "iifname != %q ct direction original %s meta mark set %#x", dev, asked, k.by.mark)
	k.rule(c, k.name()+" answer", "iifname %q ct direction reply %s meta mark set %#x", dev, answer, k.by.mark)
}

// silence drops what answers connections from outside to the Service where this host lacks the table: it would leave by
// another one. What the host itself asked for is not forwarded, and has its answers.
func (k kernel) silence() {
	c := k.chain(plan.ForwardChain, plan.NFTChainSpec{Type: "filter", Hook: "forward", Priority: "filter"})
	dev := plan.DefaultNames().ManagementPort()
	_, answer := k.atFrontends()
	k.rule(c, k.name()+" no network", "iifname %q oifname != %q ct direction reply %s counter drop", dev, dev, answer)
}

// atFrontends match packets of connections from outside to the Service's frontends: those that ask, as they come in,
// and those that answer. What nodes ask each other, pods' connections to node ports among it, is answered as without.
func (k kernel) atFrontends() (asked, answer string) {
	set := "egressservice/" + egress.Short(k.s.Key()) + "/frontends." + k.family.String()
	plan.Claim(&k.out.NFTSets, plan.NFTSet{Name: set}, plan.NFTSetSpec{
		Key: egress.AddrType(k.family) + " . inet_proto . inet_service"})
	for _, f := range k.frontends() {
		key := fmt.Sprintf("%s . %s . %d", f.IP, f.Protocol, f.Port)
		plan.Claim(&k.out.NFTElems, plan.NFTElem{Set: set, Key: key}, "")
	}
	egress.AddHostNodeIPs(k.family, k.out)
	nodes := egress.HostNodeIPs(k.family)
	return fmt.Sprintf("%s saddr != @%s %s daddr . meta l4proto . th dport @%s", k.ip(), nodes, k.ip(), set),
		fmt.Sprintf("ct original %s saddr != @%s ct original %s daddr . meta l4proto . ct original proto-dst @%s", k.ip(),
			nodes, k.ip(), set)
}

// frontends are the addresses and ports of the Service at which it is reached from outside.
func (k kernel) frontends() []world.Frontend {
	service := k.w.Service(k.s.Key())
	if service == nil {
		return nil
	}
	var out []world.Frontend
	for _, f := range service.Frontends() {
		first := k.w.Claimants(f)
		at := []netip.Addr{f.IP}
		if !f.IP.IsValid() {
			at = k.w.Host().Addrs
		}
		if len(first) == 0 || first[0] != k.s.Key() || slices.Contains(service.ClusterIPs, f.IP) {
			continue
		}
		for _, ip := range k.family.OfAddrs(at) {
			out = append(out, world.Frontend{IP: ip, Protocol: f.Protocol, Port: f.Port})
		}
	}
	return out
}

func (k kernel) services() []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(k.w.Config.ServiceSubnets), func(p netip.Prefix) bool {
		return world.FamilyOf(p.Addr()) != k.family
	})
}

func (k kernel) name() string { return egress.Short(k.s.Key()) + " " + k.family.String() }

func (k kernel) ip() string { return egress.IP(k.family) }

func (k kernel) chain(name string, spec plan.NFTChainSpec) plan.NFTChain {
	c := plan.NFTChain{Family: "inet", Name: name}
	plan.Claim(&k.out.NFTChains, c, spec)
	return c
}

func (k kernel) rule(c plan.NFTChain, name, format string, args ...any) {
	plan.Claim(&k.out.NFTRules, plan.NFTRule{Chain: c, Name: name}, fmt.Sprintf(format, args...))
}
