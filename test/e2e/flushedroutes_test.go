package e2e

import (
	"context"
	"testing"
)

// TestFlushedRoutes: somebody flushes the routes of a node's management port, as network managers do, those that the
// kernel made of its addresses among them. The host and the pods reach each other again, and pods the outside.
func TestFlushedRoutes(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	node := c.nodes[1]
	n.runs(pod{name: "own", node: node}, pod{name: "other", node: c.nodes[0]})
	t.Cleanup(func() {
		if t.Failed() { // the kernel makes the routes when the agent adds the addresses again
			_, _ = c.feed(context.Background(), node.Name, nil, "ip", "address", "flush", "dev", "ovn-k8s-mp0", "scope",
				"global")
		}
	})
	for _, flag := range []string{"-4", "-6"} {
		c.on(t, node.Name, "ip", flag, "route", "flush", "dev", "ovn-k8s-mp0")
	}
	for _, p := range []string{"own", "other"} { // a connection that began meanwhile has the default route's address
		c.from(t, node).to(n.pod(p)).formerly(node.IPs...).soonArrivesAs(c.management(t, node.Name)...)
		c.from(t, node).to(n.pod(p)).arrivesAs(c.management(t, node.Name)...)
	}
	n.from("own").to(c.outside(0)).soonArrivesAs(node.IPs...)
	n.from("own").to(n.pod("other")).arrivesAs(n.ips["own"]...)
}
