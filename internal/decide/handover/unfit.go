package handover

import "github.com/egret-net/egret/internal/world"

// Why a node hosts no address, or does so no longer, whatever the object.
const (
	CauseDeleting    = "NodeDeleting"
	CauseDeleted     = "NodeDeleted"
	CauseUnselected  = "NodeNotSelected"
	CauseNotReady    = "NodeNotReady"
	CauseNotSetUp    = "NodeNotSetUp"
	CauseUnreachable = string(world.NodeUnreachable)
	CauseAgentAway   = string(world.AgentAway)
	CauseCordoned    = "NodeCordoned"
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
