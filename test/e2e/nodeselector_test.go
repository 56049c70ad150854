package e2e

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
)

// zoneKey labels nodes in the tests of this file.
const zoneKey = "e2e.egret.net/zone"

// zone gives a node its zone until the test ends.
func (c *cluster) zone(t *testing.T, n sandbox.Member, zone string) {
	t.Helper()
	c.patchNode(t, n.Name, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, zoneKey, zone))
	t.Cleanup(func() { c.patchNode(t, n.Name, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, zoneKey)) })
}

// selectNodes changes which nodes may host the addresses.
func (e egressIP) selectNodes(selector string) error {
	return e.patch(fmt.Sprintf(`{"spec":{"egressNodeSelector":%s}}`, selector))
}

// TestEgressNodeSelector: addresses are on the egress nodes that match alone. One that no longer matches gives them to
// one that does, without a packet with another source; one that begins to match moves nothing.
func TestEgressNodeSelector(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[:3]...)
	c.zone(t, c.nodes[0], "a")
	c.zone(t, c.nodes[1], "b")
	c.zone(t, c.nodes[2], "a")
	n.runs(pod{name: "a", node: c.nodes[0], sends: true}, pod{name: "b", node: c.nodes[1], sends: true})
	ips := c.number(200)
	e := c.egressIP(t, "node-selector", ips, n.itself(), metav1.LabelSelector{})
	must(t, e.selectNodes(fmt.Sprintf(`{"matchLabels":{%q:"b"}}`, zoneKey)))
	e.readyOn(c.nodes[1])
	e.until(v1.ConditionInForce, metav1.ConditionTrue, "")
	for _, p := range []string{"a", "b"} {
		n.from(p).to(c.outside(0)).soonArrivesAs(ips...)
	}
	seen := c.capture(t)
	c.zone(t, c.nodes[2], "b")
	e.readyOn(c.nodes[1]) // moves nothing
	c.zone(t, c.nodes[1], "a")
	e.readyOn(c.nodes[2])
	e.tells(v1.EventMoved, "NodeNotSelected")
	for _, p := range []string{"a", "b"} {
		n.from(p).to(c.outside(0)).soonArrivesAs(ips...)
	}
	seen.onlyFrom(n, ips)
}

// TestNoSelectedNode: where no egress node matches, the conditions name the selector; what waits is given to the first
// that does. A selector that is none is refused by the API server, or, with a key that is none, leaves the address
// where it is.
func TestNoSelectedNode(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1])
	n.runs(pod{name: "a", node: c.nodes[0]})
	ips := c.number(201)
	e := c.egressIP(t, "no-selected-node", ips, n.itself(), metav1.LabelSelector{})
	must(t, e.selectNodes(fmt.Sprintf(`{"matchLabels":{%q:"c"}}`, zoneKey)))
	o := e.until(v1.ConditionAssigned, metav1.ConditionFalse, v1.ReasonNoAssignableNode)
	if said := meta.FindStatusCondition(o.Status.Conditions, v1.ConditionAssigned).Message; !strings.Contains(said,
		"spec.egressNodeSelector ("+zoneKey+"=c) matches no egress node") {
		t.Errorf("condition says %q", said)
	}
	n.from("a").to(c.outside(0)).formerly(ips...).soonArrivesAs(c.nodes[0].IPs...)
	c.zone(t, c.nodes[1], "c")
	e.readyOn(c.nodes[1])
	n.from("a").to(c.outside(0)).formerly(c.nodes[0].IPs...).soonArrivesAs(ips...)
	if err := e.selectNodes(`{"matchLabels":null,"matchExpressions":[{"key":"zone","operator":"Near"}]}`); err == nil ||
		!strings.Contains(err.Error(), "use In, NotIn, Exists or DoesNotExist") {
		t.Errorf("an unknown operator: %v", err)
	}
	if err := e.selectNodes(`{"matchLabels":{"zone":"-"}}`); err == nil ||
		!strings.Contains(err.Error(), "spec.egressNodeSelector has a value that no label can have") {
		t.Errorf("a value that is none: %v", err)
	}
	must(t, e.selectNodes(`{"matchLabels":{"my zone":"c"}}`))
	o = e.until(v1.ConditionReady, metav1.ConditionFalse, v1.ReasonInvalidSelector)
	for _, ip := range ips {
		if node := nodesOf(o)[ip.String()]; node != c.nodes[1].Name {
			t.Errorf("%s is on %q, want %s", ip, node, c.nodes[1].Name)
		}
	}
	n.from("a").to(c.outside(0)).arrivesAs(ips...)
}
