package e2e

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/internal/world"
)

// TestOwnRouter: a pod of the hosting node, whose gateway router has a row for its own pods too, loses its translation while the policy still steers it, as
// happens in the datapath's cache for a moment. It sends nothing outside until it is back.
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
