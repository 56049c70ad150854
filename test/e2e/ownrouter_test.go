package e2e

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/internal/world"
)

// leakFilter is the set of pods whose packets leave with an egress IP or not at all.
func leakFilter(like world.Family) string { return plan.SetName(egress.FilteredPods(like)) }

// TestOwnRouterEstablished: connections that a pod has with its node's address stand still from when the pod comes
// under the leak filter, though the bridge knows them. No agent runs then, which would end them.
func TestOwnRouterEstablished(t *testing.T) {
	const count = 4
	c := theCluster(t)
	if c.Options().GatewayMode != sandbox.Shared {
		t.Skip("in this mode these connections are the host's: see the rules of chain forward")
	}
	n, k, node := c.namespace(t, nil), keptBy(t, c.hosts[0]), c.nodes[1]
	var connections, pods []string
	for i, to := range c.hosts[0].IPs {
		pods = append(pods, "keeps-"+familyName(to))
		n.runs(pod{name: pods[i], node: node, keeps: []keeps{{count: count, to: to}}})
		connections = append(connections, k.from(count, node.IPs[i])...)
	}
	t.Cleanup(func() { c.startAgent(t, node.Name) })
	if err := c.StopProcess(t.Context(), node.Name, "egret-node"); err != nil {
		t.Fatal(err)
	}
	for i, p := range pods {
		c.on(t, node.Name, "ovn-nbctl", "--wait=hv", "add", "address_set", leakFilter(world.FamilyOf(node.IPs[i])),
			"addresses", `"`+n.ips[p][i].String()+`"`)
	}
	time.Sleep(2 * time.Second) // the datapath looks at each of its flows meanwhile
	before := k.now()
	time.Sleep(2 * time.Second) // some retransmissions
	if now := k.now(); !maps.Equal(before, now) {
		t.Errorf("connections with the node's address go on: %v, then %v", before, now)
	}
	c.startAgent(t, node.Name) // it takes the pods out of the set
	k.live("with nobody under the leak filter", connections)
}

// TestOwnRouter: a pod of the hosting node, whose gateway router has a row for its own pods too, loses its translation
// while the policy still steers it, as happens in the datapath's cache for a moment. It sends nothing outside until it
// is back.
func TestOwnRouter(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1])
	ips := c.number(97)
	e := c.egressIP(t, "own-router", ips, n.itself(), metav1.LabelSelector{})
	e.readyOn(c.nodes[1])
	seen := c.capture(t)
	n.runs(pod{name: "a", node: c.nodes[1], sends: true})
	n.from("a").to(c.outside(0)).arrivesAs(ips...)
	t.Cleanup(func() { c.startAgent(t, c.nodes[1].Name) })
	if err := c.StopProcess(t.Context(), c.nodes[1].Name, "egret-node"); err != nil {
		t.Fatal(err)
	}
	for _, ip := range ips {
		set := plan.SetName("egressip/" + e.name + "/pods." + world.FamilyOf(ip).String())
		c.on(t, c.nodes[1].Name, "ovn-nbctl", "--wait=hv", "clear", "address_set", set, "addresses")
	}
	time.Sleep(time.Second) // some hundred datagrams
	begin := time.Now()
	time.Sleep(time.Second)
	for _, s := range seen.Since(begin) {
		if s.Kind == "new" && strings.HasPrefix(s.Pod, n.name+"/") { // what is tracked already goes on
			t.Errorf("datagram %d got out as %s", s.Number, s.Src)
		}
	}
	c.startAgent(t, c.nodes[1].Name)
	n.from("a").to(c.outside(0)).soonArrivesAs(ips...)
	within(t, soon, func() error {
		said, err := scrape(t.Context(), c.nodes[1], sandbox.AgentMetricsPort)
		if err == nil && said.value("egret_node_blocked_packets_total", label("path", "router")) == 0 {
			err = errors.New("no packet was counted as blocked")
		}
		return err
	})
	seen.onlyFrom(n, ips)
}
