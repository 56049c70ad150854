package egressip

import (
	"strings"

	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Allow keeps everything inside the cluster as it is: traffic among pods, to nodes, and replies of inbound connections.
type Allow struct{}

func (Allow) Name() string    { return "egressip-allow" }
func (Allow) Per() world.Kind { return world.KindHost }

// Compile adds the policies of seed egress-ip.md with priority 102, and what marks replies.
func (Allow) Compile(w *world.View, _ string, out *plan.Rows) {
	_, h, ok := w.Zone()
	if !ok {
		return
	}
	n := defaultNetwork(w)
	for _, f := range w.Config.Families() {
		n.keepInside(w, f, out)
		markLeaks(w, h, f, out)
		dropOnHost(w, f, out)
		lookUpReplies(w.Config.Bridge, f, out)
	}
}

// keepInside adds what is the same in every network.
func (n logicalNetwork) keepInside(w *world.View, f world.Family, out *plan.Rows) {
	reply := "pkt.mark == " + plan.Itoa(plan.MarkReply)
	out.AddPolicy(n.Names, "egressip-no-reroute/reply-traffic", plan.PriorityAllow, reply, "allow", nil, nil)
	n.allowInside(f, out)
	n.leaveInsideReplies(w, f, out)
	for which, pods := range map[string]string{"": egress.FilteredPods(f), "partly.": egress.PartlyServedPods(f)} {
		out.AddSet(n.Row(pods))
		n.toNodes(n.Row(pods), which, f, out)
		n.markReplies(w, n.Row(pods), which, f, out)
	}
	n.dropPaused(f, out)
}

func (n logicalNetwork) allowInside(f world.Family, out *plan.Rows) {
	ip := f.Match()
	for _, from := range n.in.Cluster(f) {
		for _, to := range n.subnetsWithoutMark(f) {
			out.AddPolicy(n.Names, "egressip-no-reroute/"+from.String()+"-"+to, plan.PriorityAllow,
				ip+".src == "+from.String()+" && "+ip+".dst == "+to, "allow", nil, nil)
		}
	}
}

// toNodes leaves what pods of a set send to nodes as it is. It is the same wherever the pods run, and also about the
// address of their own node.
func (n logicalNetwork) toNodes(pods, which string, f world.Family, out *plan.Rows) {
	ip := f.Match()
	out.AddSet(egress.NodeIPs(f))
	out.AddPolicy(n.Names, "egressip-no-reroute/nodes."+which+f.String(), plan.PriorityAllow,
		ip+".src == "+plan.InSet(pods)+" && "+ip+".dst == "+plan.InSet(egress.NodeIPs(f)), "allow", nil,
		map[string]string{"pkt_mark": plan.Itoa(plan.MarkNodeIP)})
}

const isReply = "ct.trk && ct.rpl"

// markReplies marks replies of connections that came from outside, which must not be steered anywhere.
func (n logicalNetwork) markReplies(w *world.View, pods, which string, f world.Family, out *plan.Rows) {
	match := f.Match() + ".src == " + plan.InSet(pods) + " && " + isReply
	n.addMarkPolicy(w, "egressip-mark-reply-traffic."+which+f.String(), plan.PriorityReplies, match, plan.MarkReply,
		out)
}

// leaveInsideReplies keeps those without a mark that stay inside the cluster. It is a row of its own: of
// "ip4.dst != {10.244.0.0/16, 100.64.0.0/16}" ovn-controller 25.03 makes a flow for each way in which an address can
// differ from both, 268 of both families. They came with a node's first served pod and took it and ovs-vswitchd 1 ms of
// CPU time over IPv4, and 4 over IPv6.
func (n logicalNetwork) leaveInsideReplies(w *world.View, f world.Family, out *plan.Rows) {
	match := isReply + " && " + f.Match() + ".dst == {" +
		strings.Join(n.subnetsWithoutMark(f), ", ") + "}"
	n.addMarkPolicy(w, "egressip-leave-inside-replies."+f.String(), plan.PriorityInsideReplies, match, 0, out)
}

// addMarkPolicy gives a mark to what comes from this node's pods.
func (n logicalNetwork) addMarkPolicy(w *world.View, id string, priority int, match string, mark int, out *plan.Rows) {
	sw := plan.Switch(n.NodeSwitch(w.Self))
	out.AddNB(plan.RowID{Table: "QoS", Name: n.Row(id)}, sw, plan.Cols{"priority": priority, "direction": "from-lport",
		"match": match, "action": map[string]string{"mark": plan.Itoa(mark)}})
}

// subnetsWithoutMark are the subnets that replies need no mark for. They must not have it: OVS 3.5's userspace datapath
// looks the tunnel's route up with the packet's mark, finds none, and drops what was to go to another node.
func (n logicalNetwork) subnetsWithoutMark(f world.Family) []string {
	var out []string
	for _, p := range append(n.in.Cluster(f), n.in.JoinAddr(1, f).Masked()) {
		out = append(out, p.String())
	}
	return out
}

// dropPaused drops what pods with paused egress send outside: they started before their egress IP was ready.
func (n logicalNetwork) dropPaused(f world.Family, out *plan.Rows) {
	set := n.Row(egress.PausedPods(f))
	out.AddSet(set)
	match := f.Match() + ".src == " + plan.InSet(set)
	out.AddPolicy(n.Names, "egressip-held-back."+f.String(), plan.PriorityEgressIP, match, "drop", nil, nil)
}

// NodeAddresses are one node's members of the set of node addresses.
type NodeAddresses struct{}

func (NodeAddresses) Name() string    { return "egressip-node" }
func (NodeAddresses) Per() world.Kind { return world.KindNode }

// Compile adds what one node is known by; of this node, every address of its host.
func (NodeAddresses) Compile(w *world.View, key string, out *plan.Rows) {
	n := w.Node(key)
	if _, _, ok := w.Zone(); !ok || n == nil {
		return
	}
	for _, ip := range w.NodeAddrs(n) {
		egress.AddNode(w, ip, out)
	}
}
