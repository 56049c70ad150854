package handover

import "github.com/egret-net/egret/internal/world"

// Why a node hosts no address, or does so no longer, whatever the object.
const (
	CauseDeleting     = "NodeDeleting"
	CauseDeleted      = "NodeDeleted"
	CauseUnselected   = "NodeNotSelected"
	CauseNotReady     = "NodeNotReady"
	CauseNotSetUp     = "NodeNotSetUp"
	CauseUnreachable  = string(world.NodeUnreachable)
	CauseAgentAway    = string(world.AgentAway)
	CauseCordoned     = "NodeCordoned"
	CauseNotAnswering = "NodeNotAnswering"
	CauseNotHeld      = "NotHeld"
)

// Unfit says why a node can host no address now, or "".
func Unfit(w *world.View, n *world.Node) string {
	switch {
	case n.Deleting:
		return CauseDeleting
	case n.Cordoned:
		return CauseCordoned
	case !n.Ready:
		return CauseNotReady
	case n.ID == 0 || n.ChassisID == "" || len(n.Primary) == 0:
		return CauseNotSetUp
	}
	return string(w.Unreachable(n.Name))
}

// KeepsOut says why a node is given no address that it has not, or "".
func KeepsOut(w *world.View, n *world.Node) string {
	if why := Unfit(w, n); why != "" {
		return why
	}
	if w.NotAnswering(n.Name) {
		return CauseNotAnswering
	}
	return ""
}

// NotReadyInDoubt says whether Kubernetes calls so many nodes NotReady at once that its view of them is wrong rather
// than they: all that the controller reaches, or several that are at least half of them. So it is where the kubelets'
// leases do not arrive, and the hosts go on. It counts all nodes of the cluster, egress nodes or not: one kubelet that
// is stopped is no doubt, be it that of the only egress node. A node that was found dead says nothing of the others.
// Where nodes are not probed, all count as reached. One that turned Ready lately counts as the others that have yet to.
// Kubernetes itself does likewise before it takes pods from nodes (--unhealthy-zone-threshold), from 55% on, for it
// reaches no node.
func NotReadyInDoubt(w *world.View, turns *Turns) bool {
	reached, notReady := 0, 0
	for _, name := range w.Nodes() {
		if w.Unreachable(name) == world.NodeUnreachable {
			continue
		}
		if reached++; !w.Node(name).Ready || turns.Lately(name) {
			notReady++
		}
	}
	return notReady > 0 && (notReady == reached || notReady > 1 && 2*notReady >= reached)
}

// GoesOn says whether a node that is unfit goes on with what it has, as long as no other node takes that. Its host is
// reached, and its agent alone is away. Or it was lost only now and may be back at once, with all its connections. Or
// it is not ready by a word that is in doubt: with many others (NotReadyInDoubt), or only now, so that others may
// follow. One that is not ready beyond doubt gives up what it has, though nobody takes it: an administrator who stops a
// kubelet expects that.
func GoesOn(w *world.View, n *world.Node, inDoubt bool) bool {
	switch Unfit(w, n) {
	case CauseAgentAway:
		return true
	case CauseUnreachable:
		return w.NotAnswering(n.Name)
	case CauseNotReady:
		return inDoubt && w.Unreachable(n.Name) != world.NodeUnreachable
	}
	return false
}
