package egressip

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// filteredPods is the set of this node's pods under the leak filter: their packets leave with an egress IP or not at
// all. They are those that a policy steers or drops, and those with paused egress.
func filteredPods(f world.Family) string { return "egressip-guarded-pods." + f.String() }

// markLeaks marks what pods under the leak filter send through this node's own gateway router. That has a NAT row for
// the node's own pods, with the node's address, and gives this to each packet for which no egress IP's row matches: the
// bridge drops what has the mark and the node's address. Even where flows change at one time, what the datapath has
// cached of them does not (OVS 3.5 revalidates one entry after the other): a packet may be steered by the old policy
// and translated by the new rows, when a pod goes or comes under another EgressIP. A pod that changes so stays in the
// set.
func markLeaks(w *world.View, h *world.Host, f world.Family, out *plan.Rows) {
	n := plan.DefaultNames()
	out.AddSet(filteredPods(f))
	match := fmt.Sprintf("inport == %q && %s.src == %s && pkt.mark == 0",
		n.GatewayToJoin(w.Self), f.Match(), plan.InSet(filteredPods(f)))
	router := plan.Router(n.GatewayRouter(w.Self))
	out.AddNB(plan.RowID{Table: "Logical_Router_Policy", Name: filteredPods(f)}, router, plan.Cols{
		"priority": plan.PriorityEgressIP, "action": "allow", "nexthops": []string(nil),
		"match":   match,
		"options": map[string]string{"pkt_mark": plan.Itoa(plan.MarkGuarded)},
	})
	if node, ok := f.Of(h.Primary); ok {
		dropOnBridge(w.Config, f, node.Addr(), out)
	}
}

// throughHost says whether packets of pods under the leak filter can meet the host's kernel on their way outside, which
// masquerades what pods send.
func throughHost(w *world.View) bool {
	h := w.Host()
	return w.Config.GatewayMode == world.LocalGateway || h != nil && len(h.Links) > 0
}

// dropOnHost drops what pods under the leak filter begin through the host without a link's mark, but to nodes: the host
// would give it its own address. The set is grown before the logical network steers, and shrunk after it: what comes by
// a path that is no longer, or not yet, in force is dropped.
func dropOnHost(w *world.View, f world.Family, out *plan.Rows) {
	if !throughHost(w) {
		return
	}
	c := plan.NFTChain{Family: "inet", Name: plan.ForwardChain}
	plan.Claim(&out.NFTChains, c, plan.NFTChainSpec{Type: "filter", Hook: "forward", Priority: "filter"})
	plan.Claim(&out.NFTSets, plan.NFTSet{Name: filteredPods(f)}, plan.NFTSetSpec{Key: addrType(f)})
	nodeIPSet(f, out)
	ip := [...]string{"ip", "ip6"}[f]
	var inside strings.Builder
	for _, p := range w.Config.Cluster(f) {
		fmt.Fprintf(&inside, " %s daddr != %s", ip, p)
	}
	plan.Claim(&out.NFTRules, plan.NFTRule{Chain: c, Name: plan.ForwardUntranslated + filteredPods(f)}, fmt.Sprintf(
		"iifname %q ct direction original meta mark & %#x != %#x %s saddr @%s %s daddr != @%s%s counter drop",
		plan.DefaultNames().ManagementPort(), plan.MarkEgressLinkMask, plan.MarkEgressLink,
		ip, filteredPods(f), ip, setNodeIPs+f.String(), inside.String()))
}

// filterPod puts a pod of this node under the leak filter.
func filterPod(w *world.View, f world.Family, ip netip.Addr, out *plan.Rows) {
	out.AddElem(filteredPods(f), ip.String())
	if throughHost(w) { // an orphan is known before the node is, whose rules bring the set
		plan.Claim(&out.NFTSets, plan.NFTSet{Name: filteredPods(f)}, plan.NFTSetSpec{Key: addrType(f)})
		plan.Claim(&out.NFTElems, plan.NFTElem{Set: filteredPods(f), Key: ip.String()}, "")
	}
}

// dropOnBridge drops what has the mark and begins a connection with the node's address. What answers one from outside
// to a node port has that address rightly: the bridge knows that connection.
func dropOnBridge(c *world.Config, f world.Family, node netip.Addr, out *plan.Rows) {
	ip, source := [...]string{"ip", "ipv6"}[f], [...]string{",nw_src=", ",ipv6_src="}[f]+node.String()
	n := plan.DefaultNames()
	match := ip + source + ",in_port=" + n.PatchPort() + ",pkt_mark=" + plan.Itoa(plan.MarkGuarded)
	out.AddFlow(c.Bridge, plan.GuardedAsNode, match,
		fmt.Sprintf("ct(zone=%d,table=%d)", plan.ZoneGateway, plan.GuardedDrop.Table()))
	for _, state := range []string{"+trk+est", "+trk+rel"} {
		out.AddFlow(c.Bridge, plan.GuardedReply, ip+",ct_state="+state, n.Commit()+",output:{"+c.UplinkInterface+"}")
	}
	plan.Claim(&out.Flows, leakFlow(c, f), "drop")
}

func leakFlow(c *world.Config, f world.Family) plan.Flow {
	return plan.GuardedDrop.Flow(c.Bridge, [...]string{"ip", "ipv6"}[f])
}

// LeakFlows are the flows of the bridge that drop leaks, for those who count.
func LeakFlows(c *world.Config) []plan.Flow {
	var out []plan.Flow
	for _, f := range c.Families() {
		out = append(out, leakFlow(c, f))
	}
	return out
}
