package e2e

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/traffic"
)

// TestAgentStartsWithoutAPI: an agent that starts and does not reach the API server leaves pods as they were: one
// without an EgressIP goes on with its node's address, also where the host's kernel gives it that, and one with an
// EgressIP with the EgressIP's.
func TestAgentStartsWithoutAPI(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	node := c.nodes[0]
	c.labelEgress(t, c.nodes[1])
	ips := c.number(210)
	e := c.egressIP(t, "agent-starts", ips, n.itself(), selects(web))
	e.readyOn(c.nodes[1])
	seen := c.capture(t)
	n.runs(pod{name: "plain", node: node, sends: true}, pod{name: "served", node: node, labels: web, sends: true})
	both := []string{"plain", "served"}
	seen.flowing(c, n, both, time.Now(), soon)
	begin := time.Now()
	c.killedWithoutAPI(t, node, func() {
		seen.flowing(c, n, both, time.Now(), soon)
		time.Sleep(watched)
		if lost := seen.lost(begin); lost.Gap > standstill {
			t.Errorf("traffic stood still: %s", lost)
		}
	})
	for name, right := range map[string][]netip.Addr{"plain": node.IPs, "served": ips} {
		if wrong := traffic.Wrong(seen.Since(time.Time{}), n.name+"/"+name, right); len(wrong) > 0 {
			t.Errorf("pod %s: %v, want %v", name, wrong, right)
		}
	}
}

// killedWithoutAPI has something looked at when the agent of a node that does not reach the API server was killed, and
// another has begun.
func (c *cluster) killedWithoutAPI(t *testing.T, node sandbox.Member, look func()) {
	t.Helper()
	heal := func() {
		if err := c.Heal(context.Background(), node.Name); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(heal)
	if err := c.Partition(t.Context(), node.Name, sandbox.FromAPI); err != nil {
		t.Fatal(err)
	}
	within(t, soon, func() error { return c.KillProcess(t.Context(), node.Name, "egret-node") })
	within(t, soon, func() error {
		_, err := c.feed(t.Context(), node.Name, nil, "egret-node", "plan")
		return err
	})
	look()
	heal()
	within(t, podsTimeout, func() error { return c.isReady(node.Name) })
}
