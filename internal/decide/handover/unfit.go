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

// GoesOn says whether a node that is unfit goes on with what it has, as long as no other node takes that: only its
// agent is away. One that is not ready gives up what it has, though nobody takes it: an administrator who stops a
// kubelet expects that.
func GoesOn(w *world.View, n *world.Node) bool { return Unfit(w, n) == CauseAgentAway }
