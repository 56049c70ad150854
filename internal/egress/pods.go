package egress

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Addresses are a pod's in a network: the attachment's where the pod is ours, which knows before the API tells.
func Addresses(w *world.View, p *world.Pod, network string) []netip.Addr {
	if p.Node != w.Self {
		return w.PodIPs(p, network)
	}
	if a := w.Attachment(p.Key()); a != nil && a.UID == p.UID {
		return a.In(network)
	}
	return w.PodIPs(p, network)
}

// Pause has a pod send nothing outside the cluster by a network.
func Pause(w *world.View, n plan.Names, f world.Family, ip netip.Addr, out *plan.Rows) {
	out.AddElem(n.Row(PausedPods(f)), ip.String())
	Filter(w, n, f, ip, out)
}

// Waits says whether a pod's packets to an object's destinations wait, and are dropped meanwhile: one of the nodes that
// they would be led to may still translate them for another object.
func Waits(w *world.View, object ref.Object, at world.PodAddr, nodes []string) bool {
	return slices.ContainsFunc(nodes, func(node string) bool { return w.MayTranslate(node, at, object) })
}

// TellWaits says for which of the nodes a pod's packets wait, where that lasts, or that they wait for another pod with
// the address to go: a problem of the object.
func TellWaits(w *world.View, object ref.Object, at world.PodAddr, nodes []string, out *plan.Rows) {
	for _, node := range nodes {
		if w.MayTranslate(node, at, object) && w.LateToFollow(node) {
			tellUnfollowed(object, node, out)
		}
	}
	if w.IsShared(at) {
		text := "some pods of this node that it selects send nothing outside: two pods of this node have address " +
			at.IP.String() + ". Delete one of the two"
		plan.Add(&out.Problems, plan.Problem{Object: object, Reason: world.ReasonUnserved, Message: text}, plan.None{})
	}
}

// TellUnaware says which of the nodes that a pod's packets are led to do not answer whether they know of its claim. One
// that does not know drops the packets. A problem of the object.
func TellUnaware(w *world.View, object ref.Object, at world.PodAddr, nodes []string, out *plan.Rows) {
	for _, node := range nodes {
		if w.MayDrop(node, at, object) && w.LateToFollow(node) {
			tellSilent(object, node, "pods of this node are led to "+node+", which drops what it does not know of", out)
		}
	}
}

// TellUnanswered says which of the nodes that an object's addresses of a family are assigned to have not answered at
// all since this node's agent started, though they were asked for some time: no packet is led there.
func TellUnanswered(w *world.View, object ref.Object, f world.Family, items []world.Assignment, out *plan.Rows) {
	for _, a := range items {
		if world.FamilyOf(a.IP) == f && a.Node != world.HostAll && !w.Cleared(a.Node) && w.LateToFollow(a.Node) {
			tellUnfollowed(object, a.Node, out)
		}
	}
}

func tellUnfollowed(object ref.Object, node string, out *plan.Rows) {
	tellSilent(object, node, "pods of this node that it serves wait for "+node, out)
}

// tellSilent says what becomes of pods while a node's agent does not answer, and what to look at.
func tellSilent(object ref.Object, node, what string, out *plan.Rows) {
	text := what + ": its agent does not say that it has followed " +
		"which pods they are. Is it running, does it reach the API server, do packets pass between the two nodes, and " +
		"does its host let its --agent-port in?"
	plan.Add(&out.Problems, plan.Problem{Object: object, Reason: world.ReasonUnfollowed, Message: text}, plan.None{})
}

// Management is the address of a node's management port, by which packets go to its host.
func Management(n *world.Node, f world.Family) (netip.Addr, bool) {
	s, ok := f.Of(n.Subnets)
	if !ok {
		return netip.Addr{}, false
	}
	return world.Nth(s, 2), true
}
