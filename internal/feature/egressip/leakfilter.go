package egressip

import (
	"fmt"
	"net/netip"

	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// markLeaks marks what pods under the leak filter send through this node's own gateway router. That has a NAT row for
// the node's own pods, with the node's address, and gives this to each packet for which no egress IP's row matches: the
// bridge drops what has the mark and the node's address. Even where flows change at one time, what the datapath has
// cached of them does not (OVS 3.5 revalidates one entry after the other): a packet may be steered by the old policy
// and translated by the new rows, when a pod goes or comes under another EgressIP. A pod that changes so stays in the
// set.
func markLeaks(w *world.View, h *world.Host, f world.Family, out *plan.Rows) {
	markLeaksOf(w, f, egress.FilteredPods(f), "", out)
	if node, ok := f.Of(h.Primary); ok {
		dropOnBridge(w.Config, f, node.Addr(), out)
	}
}

// markLeaksOf is the policy that marks what the pods of a set send, of that what a match beside asks for.
func markLeaksOf(w *world.View, f world.Family, pods, beside string, out *plan.Rows) {
	n := plan.DefaultNames()
	match := fmt.Sprintf("inport == %q && %s.src == %s%s && pkt.mark == 0",
		n.GatewayToJoin(w.Self), f.Match(), plan.InSet(pods), beside)
	router := plan.Router(n.GatewayRouter(w.Self))
	out.AddNB(plan.RowID{Table: "Logical_Router_Policy", Name: pods}, router, plan.Cols{
		"priority": plan.PriorityEgressIP, "action": "allow", "nexthops": []string(nil),
		"match":   match,
		"options": map[string]string{"pkt_mark": plan.Itoa(plan.MarkFiltered)},
	})
}

// dropOnHost drops what pods under the leak filter begin through the host without an egress mark.
func dropOnHost(w *world.View, f world.Family, out *plan.Rows) {
	if egress.ThroughHost(w) {
		egress.DropOnHost(w, f, egress.FilteredPods(f), "", out)
	}
}

// filterClaim puts what a pod of this node sends to an EgressIP's destinations under the leak filter. To others the
// pod's packets leave with the node's address rightly.
func filterClaim(w *world.View, n logicalNetwork, e *world.EgressIP, f world.Family, ip netip.Addr, out *plan.Rows) {
	if e.Traffic == nil {
		egress.Filter(w, n.Names, f, ip, out)
		return
	}
	out.AddElem(n.Row(egress.PartlyServedPods(f)), ip.String())
	set := n.setName(filteredPodsOf, e, f)
	out.AddSet(set)
	out.AddElem(set, ip.String())
	if n.ID > 0 {
		n.dropUnmarked(w, f, set, onlyTo(e, f), out)
		return
	}
	markLeaksOf(w, f, set, onlyTo(e, f), out)
	if egress.ThroughHost(w) {
		pods := filteredPodsOf.hostSet(e, f)
		plan.Add(&out.NFTElems, plan.NFTElem{Set: pods, Key: ip.String()}, "")
		hostDestinationSet(e, f, out)
		egress.DropOnHost(w, f, pods, hostOnlyTo(e, f), out)
	}
}

// dropOnBridge drops what has the mark and the node's address. Answers of a connection from outside to a node port have
// that address rightly: the bridge knows that connection, and that this is its reply direction. The same is true of the
// pod's ICMP errors about what came by it. A pod's own connections are dropped also where the bridge knows them: they
// may have begun before the pod came under the filter.
func dropOnBridge(c *world.Config, f world.Family, node netip.Addr, out *plan.Rows) {
	ip := [...]string{"ip", "ipv6"}[f]
	checkOnBridge(c, f, node, plan.Itoa(plan.MarkFiltered), out)
	for _, state := range []string{"+trk+est+rpl", "+trk+rel+rpl"} {
		out.AddFlow(c.Bridge, plan.FilteredReply, ip+",ct_state="+state,
			plan.Leaves(plan.CommitOVN(), "{"+c.UplinkInterface+"}", c.UserspaceOVS))
	}
	plan.Add(&out.Flows, leakFlow(c, f), "drop")
}

// checkOnBridge leads what has a mark and the node's address to the flows that know whether it is a reply.
func checkOnBridge(c *world.Config, f world.Family, node netip.Addr, mark string, out *plan.Rows) {
	source := [...]string{"ip,nw_src=", "ipv6,ipv6_src="}[f] + node.String()
	out.AddFlow(c.Bridge, plan.FilteredAsNode, source+",in_port="+plan.PatchPort+",pkt_mark="+mark,
		fmt.Sprintf("ct(zone=%d,table=%d)", plan.ZoneGateway, plan.FilteredDrop.Table()))
}

func leakFlow(c *world.Config, f world.Family) plan.Flow {
	return plan.FilteredDrop.Flow(c.Bridge, [...]string{"ip", "ipv6"}[f])
}

// LeakFlows are the flows of the bridge that drop leaks, for those who count.
func LeakFlows(c *world.Config) []plan.Flow {
	var out []plan.Flow
	for _, f := range c.Families() {
		out = append(out, leakFlow(c, f))
	}
	return out
}
