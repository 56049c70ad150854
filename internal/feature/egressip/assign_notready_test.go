package egressip_test

import (
	"testing"

	"github.com/egret-net/egret/internal/world"
)

// TestOnlyNodeNotReady: what no other node can take stays on one that Kubernetes calls NotReady, while it is not found
// dead.
func TestOnlyNodeNotReady(t *testing.T) {
	w := newWorld()
	three(w)
	for _, name := range []string{"n2", "n3"} {
		n := *w.Node(name)
		n.Labels = nil
		w.SetNode(&n)
	}
	w.SetEgressIP(object("e", 0, "172.18.0.33"))
	settle(w)
	n1 := node("n1", 2, "172.18.0.2/24")
	n1.Ready = false
	w.SetNode(n1)
	if d := settle(w)["e"]; items(d) != "n1=172.18.0.33" || len(d.Events) > 0 {
		t.Errorf("NotReady: %s, %+v", items(d), d.Events)
	}
	w.SetUnreachable("n1", world.NodeUnreachable)
	if d := settle(w)["e"]; items(d) != "" {
		t.Errorf("dead: %s", items(d))
	}
	w.SetUnreachable("n1", "")
	if d := settle(w)["e"]; items(d) != "" {
		t.Errorf("it is given nothing new: %s", items(d))
	}
	w.SetNode(node("n1", 2, "172.18.0.2/24"))
	if d := settle(w)["e"]; items(d) != "n1=172.18.0.33" {
		t.Errorf("Ready again: %s", items(d))
	}
	w.SetNode(n1)
	w.SetNode(node("n2", 3, "172.18.0.3/24"))
	if d := settle(w)["e"]; items(d) != "n2=172.18.0.33" {
		t.Errorf("another can take it: %s", items(d))
	}
}
