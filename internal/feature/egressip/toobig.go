package egressip

import (
	"fmt"
	"net/netip"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// header is Ethernet's, which OVS counts where it looks at the size of a packet.
const header = 14

// tooBig has the host's kernel bring replies to an egress IP to the size that pods' links carry, as it does with what
// it masquerades itself: OVN answers with ICMP whatever is too big, also where the sender allows fragments and does not
// listen, and drops it. The kernel cuts what may be cut, and answers the rest. It routes to the management port, so
// that the packets come to the cluster router and from there to the gateway router, which knows their connection,
// whichever side they come from. A fragment takes that way whatever its size: the kernel needs all of a datagram's.
func tooBig(w *world.View, n *world.Node, h *world.Host, f world.Family, ip netip.Addr, out *plan.Rows) {
	toHost(w, n, h, f, ip, out)
	out.AddRoute(plan.DefaultNames().ClusterRouter(), "dst-ip", world.Single(ip).String(), w.Config.Join(n.ID, f).Addr().String(), "")
}

// toHost gives replies that are too big, and fragments, to the host, which routes them to the management port.
func toHost(w *world.View, n *world.Node, h *world.Host, f world.Family, ip netip.Addr, out *plan.Rows) {
	subnet, ok := f.Of(n.Subnets)
	if !ok {
		return
	}
	bridge := w.Config.Bridge
	reply := [...]string{"ip,nw_dst=", "ipv6,ipv6_dst="}[f] + ip.String() + ",ct_state=+trk+est," + plan.OfOVN()
	out.AddFlow(bridge, plan.ReplyFragment, reply+",nw_frag=yes", "LOCAL")
	out.AddFlow(bridge, plan.ReplySize, reply,
		fmt.Sprintf("check_pkt_larger(%d)->reg0[0],resubmit(,%d)", w.Config.PodMTU(h)+header, plan.ReplyTooBig.Table()))
	out.AddFlow(bridge, plan.ReplyTooBig, "reg0=1", "LOCAL")
	out.AddFlow(bridge, plan.ReplyFits, "", "output:"+plan.PatchPort)
	plan.Add(&out.Routes, plan.RouteKey{Table: plan.ReplyTable, Dst: world.Single(ip)},
		plan.Route{Dev: plan.DefaultNames().ManagementPort(), Via: world.Nth(subnet, 1), MTU: w.Config.PodMTU(h)})
}

// lookUpReplies has the host look up the table with these routes for what the bridge gives it, and not for what it
// sends itself: an address that an EgressIP asks for, and does not get, may be anybody's.
func lookUpReplies(bridge string, f world.Family, out *plan.Rows) {
	plan.Add(&out.Rules, plan.Rule{V6: f == world.V6, Priority: plan.RuleReply.Priority(), Table: plan.ReplyTable,
		In: bridge}, plan.None{})
}
