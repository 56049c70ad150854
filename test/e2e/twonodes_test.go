package e2e

import (
	"testing"

	"github.com/egret-net/egret/internal/sandbox"
)

// TestTwoNodes: of two nodes one loses its power, and the other takes its egress IP over before Kubernetes has noticed;
// then the other way round, so that the controller that leads is lost once, too, and the one that stood by cannot have
// heard of it by anyone but the API server and the gateway.
func TestTwoNodes(t *testing.T) {
	c := theTwoNodes(t)
	n := c.namespace(t, nil)
	a, b := c.nodes[0], c.nodes[1]
	c.labelEgress(t, b)
	n.runs(pod{name: "on-a", node: a, labels: web}, pod{name: "on-b", node: b, labels: web})
	ips := c.number(66)
	e := c.egressIP(t, "two", ips, n.itself(), selects(web))
	e.readyOn(b)
	c.labelEgress(t, a)
	for _, step := range []struct {
		lost, left sandbox.Member
		pod        string
	}{{b, a, "on-a"}, {a, b, "on-b"}} {
		n.from(step.pod).to(c.outside(0)).arrivesAs(ips...)
		c.powerOff(t, step.lost.Name)
		e.tells("Moved", "moves from "+step.lost.Name+" (NodeUnreachable) to "+step.left.Name)
		n.from(step.pod).to(c.outside(0)).soonArrivesAs(ips...)
		c.powerOn(t, step.lost.Name)
		n.backOn(step.lost)
		e.readyOn(step.left)
	}
}

// backOn waits until a node that was without power runs its pod again: until then Kubernetes may call it Ready because
// it has not noticed.
func (n *namespace) backOn(node sandbox.Member) {
	n.t.Helper()
	for name, at := range n.at {
		if at == node.Name {
			within(n.t, podsTimeout, func() error { _, err := n.exec(n.t.Context(), name, "true"); return err })
			within(n.t, podsTimeout, func() error { // at its new address
				if err := n.learn(name); err != nil {
					return err
				}
				return n.answers(pod{name: name, node: node})
			})
		}
	}
	within(n.t, podsTimeout, func() error { return n.c.isReady(node.Name) })
}
