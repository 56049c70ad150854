package e2e

import (
	"context"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/sandbox"
)

// TestOnlyNodeStandsStill: the switch of the only egress node stands still for less than five seconds, as on a starved
// machine. The node is found unreachable. It keeps the address, which no other can take, and no packet leaves with a
// node's address.
func TestOnlyNodeStandsStill(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1])
	ips := c.number(176)
	e := c.egressIP(t, "stands-still", ips, n.itself(), metav1.LabelSelector{})
	n.runs(pod{name: "a", node: c.nodes[0], sends: true}, pod{name: "b", node: c.nodes[1], sends: true})
	e.readyOn(c.nodes[1])
	seen := c.capture(t)
	seen.flowing(c, n, []string{"a", "b"}, time.Now(), soon)
	c.standsStill(t, c.nodes[1])
	seen.flowing(c, n, []string{"a", "b"}, time.Now(), soon)
	seen.onlyFrom(n, ips)
	e.readyOn(c.nodes[1])
}

// standsStill stops a node's switch for three times as long as it takes to be found unreachable.
func (c *cluster) standsStill(t *testing.T, node sandbox.Member) {
	t.Helper()
	signal := func(s syscall.Signal) {
		must(t, c.SignalProcess(context.WithoutCancel(t.Context()), node.Name, "ovs-vswitchd", s))
	}
	t.Cleanup(func() { signal(syscall.SIGCONT) }) // other tests use this node, whatever becomes of this one
	signal(syscall.SIGSTOP)
	time.Sleep(3 * time.Second)
	signal(syscall.SIGCONT)
}
