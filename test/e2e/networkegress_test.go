package e2e

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
)

// TestNetworkEgressIP: pods of two networks with the same addresses leave with the EgressIPs that select them, from a
// node that hosts them and has no pod of the networks, and after a move from a node that has. No datagram has another
// source meanwhile. One EgressIP serves pods of a network and of the default one. One on a link serves no pod of a
// network, and says so.
func TestNetworkEgressIP(t *testing.T) {
	c := theCluster(t)
	blue, red, plain := c.tenant(t, "blue"), c.tenant(t, "red"), c.namespace(t, nil)
	blue.runs("blue-0", "blue-1")
	red.runs("red-0", "red-1")
	if blue.own["blue-0"][0] != red.own["red-0"][0] {
		t.Fatalf("blue has %v and red %v: want the same addresses", blue.own, red.own)
	}
	plain.runs(pod{name: "plain", node: c.nodes[0]})
	c.serveOnNodes(t)
	c.labelEgress(t, c.nodes[2])
	both := c.egressIP(t, "networks-both", c.number(61), selectsWhere(corev1.LabelMetadataName,
		metav1.LabelSelectorOpIn,
		blue.name, plain.name), metav1.LabelSelector{})
	own := c.egressIP(t, "networks-red", c.number(62), red.itself(), metav1.LabelSelector{})
	both.readyOn(c.nodes[2])
	own.readyOn(c.nodes[2])
	leave := func(blues, reds func(at int) []netip.Addr) {
		t.Helper()
		for i, node := range []string{"0", "1"} {
			blue.from("blue-" + node).to(c.outside(0)).formerly(c.number(61)...).soonArrivesAs(blues(i)...)
			red.from("red-" + node).to(c.outside(0)).formerly(c.number(62)...).soonArrivesAs(reds(i)...)
		}
		plain.from("plain").to(c.outside(0)).formerly(c.number(61)...).soonArrivesAs(blues(0)...)
	}
	number := func(n int) func(int) []netip.Addr { return func(int) []netip.Addr { return c.number(n) } }
	leave(number(61), number(62))
	for _, n := range []*tenant{blue, red} {
		n.each(part{n.network + "Inside", n.inside}, part{n.network + "Nodes", n.toNodes},
			part{n.network + "DNSAndAPIServer", n.clusterServices})
	}

	seen := c.capture(t)
	c.labelEgress(t, c.nodes[0])
	c.unlabelEgress(t, c.nodes[2])
	both.readyOn(c.nodes[0])
	own.readyOn(c.nodes[0])
	leave(number(61), number(62))
	seen.onlyFrom(blue.namespace, c.number(61))
	seen.onlyFrom(red.namespace, c.number(62))

	both.delete()
	own.delete()
	atHome := func(i int) []netip.Addr { return c.nodes[i].IPs }
	leave(atHome, atHome)

	onLink := c.egressIP(t, "networks-on-link", c.secondaryNumber(61), red.itself(), metav1.LabelSelector{})
	onLink.until(v1.ConditionNetworksServed, metav1.ConditionFalse, v1.ReasonNetworkUnsupported)
	onLink.tells(v1.ReasonNetworkUnsupported, "is not on the primary network of "+c.nodes[0].Name)
}
