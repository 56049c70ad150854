package handover

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Standing returns a node that reports that it still holds an address for another object, or that may hold it and has
// not reported yet. Its rows stay until its agent has released the address, and its own pods leave with it. A node that
// is gone, rebooted or out no longer holds anything. A node's credentials can be misused to report any address. A node
// that reports too many is not believed (world.MostStanding), and an address that is already assigned in its object's
// status is never reassigned because of such a report. A recreated object of the same key is another one.
func Standing(all *world.World, w *world.View, object Claimant, ip netip.Addr) (h world.HeldFor, is bool) {
	for _, h := range w.HeldAt(ip) {
		if ofAnother(all, w, h, object, ip) && !isOut(w, h.Node) && (h.Unsaid || !w.Overclaims(h.Node)) {
			return h, true
		}
	}
	return h, false
}

// ofAnother says whether a node's claim is another object's, or a former one's of the same key. An address that the
// object's own status names is its own, whatever the clocks say that stamped its creation and its assignment.
func ofAnother(all *world.World, w *world.View, h world.HeldFor, object Claimant, ip netip.Addr) bool {
	if h.Object != object.Key {
		return true
	}
	p := w.PlacementOf(object.Key)
	return (p == nil || !p.Names(h.Node, ip)) && all.HeldBefore(h.Node, object.Key, ip, object.UID, object.Made)
}

// Claimant is an object that an address is for, and when it was made.
type Claimant struct {
	Key, UID string
	Made     time.Time
}

// isOut says whether a node is taken for dead by the leader, and by Kubernetes, too. That the leader does not reach it
// is enough for its objects to have another holder, for that must not wait; but a node that was silent for a second
// goes on translating, and no object has a claim to an address of another one's that is worth two sources.
func isOut(w *world.View, node string) bool {
	n := w.Node(node)
	return n == nil || !n.Ready && w.Unreachable(node) == world.NodeUnreachable
}

// StandingText says so for people, and what to do.
func StandingText(ip netip.Addr, h world.HeldFor) string {
	if h.Unsaid {
		return fmt.Sprintf("%s may still be held by node %s for %s, which had it a moment ago: it is free 10 s after that, "+
			"unless that node says that it holds it", ip, h.Node, ref.OfKey(h.Object))
	}
	return fmt.Sprintf("%s is still held by node %s for %s, by that node's word: see whether egret-node runs there; if "+
		"the node is gone for good, delete its Node", ip, h.Node, ref.OfKey(h.Object))
}
