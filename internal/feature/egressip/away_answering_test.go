package egressip_test

import (
	"testing"

	"github.com/egret-net/egret/internal/world"
)

// TestAnsweringWhileAgentsAreAway: while the agents of all nodes are away, a node that answers again is given what has
// no node, and one that does not answer any more is given nothing.
func TestAnsweringWhileAgentsAreAway(t *testing.T) {
	away := ofAll(func(w *world.World, node string) { w.SetUnreachable(node, world.AgentAway) })
	silent := ofAll(func(w *world.World, node string) { w.SetNotAnswering(node, true) })
	answering := ofAll(func(w *world.World, node string) { w.SetNotAnswering(node, false) })
	if e := sameHistory(t, away, silent, asksFor(0), answering).EgressIP("e0"); len(e.Items) != 1 {
		t.Errorf("nodes answer again, and it is at %v", e.Items)
	}
	if e := sameHistory(t, away, silent, asksFor(0)).EgressIP("e0"); len(e.Items) != 0 {
		t.Errorf("no node answers, and it is at %v", e.Items)
	}
}
