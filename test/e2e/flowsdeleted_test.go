package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFlowsDeleted: somebody deletes all flows of the hosting node's bridge, by which it reaches the API server, too.
// They are there again within seconds, and pods leave with their egress IP.
func TestFlowsDeleted(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	n := c.namespace(t, nil)
	hosting := c.nodes[2]
	c.labelEgress(t, hosting)
	ips := c.number(65)
	c.egressIP(t, "flows-deleted", ips, n.itself(), metav1.LabelSelector{}).readyOn(hosting)
	n.runs(pod{name: "a", node: c.nodes[0]})
	n.from("a").to(c.outside(0)).soonArrivesAs(ips...)
	c.on(t, hosting.Name, "ovs-ofctl", "del-flows", "breth0")
	t.Logf("they are there after %s", within(t, 2*soon, func() error {
		return n.from("a").to(c.outside(0)).check(ips)
	}))
}
