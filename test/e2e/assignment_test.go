package e2e

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
)

// TestLateLabel: an egress label that comes late assigns what waits, completes what is partial, and moves nothing else.
func TestLateLabel(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	n := c.namespace(t, nil)
	n.runs(pod{name: "a", node: c.nodes[0]})
	ips := concat(c.number(40)[:1], c.number(41)[:1])
	e := c.egressIP(t, "late", ips, n.itself(), metav1.LabelSelector{})
	e.until(v1.ConditionReady, metav1.ConditionFalse, v1.ReasonNoAssignableNode)
	e.tells(v1.EventNoMatchingNodeFound, "label a node")
	n.from("a").to(c.outside(0)).arrivesAs(c.nodes[0].IPs...)

	c.labelEgress(t, c.nodes[1])
	first := nodesOf(e.until(v1.ConditionAssigned, metav1.ConditionFalse, v1.ReasonPartiallyAssigned))
	e.tells(v1.EventAssigned, c.nodes[1].Name)
	n.from("a").to(family4or6(c.outside(0), ips[0])).formerly(c.nodes[0].IPs...).soonArrivesAs(ips...)

	c.labelEgress(t, c.nodes[2])
	both := e.ready()
	for ip, node := range first {
		if both[ip] != node {
			t.Errorf("%s moved from %s to %s when another node was labelled", ip, node, both[ip])
		}
	}
	n.from("a").to(family4or6(c.outside(0), ips[0])).spreadsOver(ips...)

	c.labelEgress(t, c.nodes[0])
	c.egressIP(t, "late-other", c.number(42), n.itself(), metav1.LabelSelector{}).ready()
	if after := e.ready(); !maps.Equal(after, both) {
		t.Errorf("addresses went from %v to %v when a third node was labelled", both, after)
	}
}

// TestNodeUnlabelled: an address leaves a node that may not host it any more, and its pods go with it.
func TestNodeUnlabelled(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[0], c.nodes[1])
	n.runs(pod{name: "a", node: c.nodes[0], sends: true}, pod{name: "b", node: c.nodes[1], sends: true}, pod{name: "c",
		node: c.nodes[2], sends: true})
	ips := c.number(45)
	e := c.egressIP(t, "unlabelled", ips, n.itself(), metav1.LabelSelector{})
	e.ready()
	e.until(v1.ConditionInForce, metav1.ConditionTrue, "")
	for _, p := range []string{"a", "b", "c"} {
		n.from(p).to(c.outside(0)).soonArrivesAs(ips...)
	}
	seen, begin := c.capture(t), time.Now()
	from, to := c.nodes[0], c.nodes[1]
	if len(ips) == 1 && e.ready()[ips[0].String()] == to.Name {
		from, to = to, from
	}
	c.unlabelEgress(t, from)
	e.readyOn(to)
	e.tells(v1.EventMoved, "NodeUnlabelled")
	for _, p := range []string{"a", "b", "c"} {
		n.from(p).to(c.outside(0)).soonArrivesAs(ips...)
	}
	seen.onlyFrom(n, ips)
	t.Log(seen.lost(begin))
}

// TestNodeNotReady: a node whose kubelet is dead hosts nothing, and does again when it is back, but nothing moves back.
func TestNodeNotReady(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1], c.nodes[2])
	n.runs(pod{name: "a", node: c.nodes[0]})
	ips := c.number(46)
	e := c.egressIP(t, "notready", ips, n.itself(), metav1.LabelSelector{})
	e.readyOn(c.nodes[1:][:len(ips)]...)
	if err := c.StopProcess(t.Context(), c.nodes[1].Name, "kubelet"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.startKubelet(t, c.nodes[1].Name) })
	e.readyOn(c.nodes[2])
	e.tells(v1.EventMoved, "NodeNotReady")
	n.from("a").to(c.outside(0)).soonArrivesAs(ips...)
	c.startKubelet(t, c.nodes[1].Name)
	e.readyOn(c.nodes[2])
	n.from("a").to(c.outside(0)).arrivesAs(ips...)
}

func (c *cluster) startKubelet(t *testing.T, node string) {
	t.Helper()
	if err := c.StartProcess(context.Background(), node, "kubelet"); err != nil {
		t.Fatal(err)
	}
	within(t, notReadyTimeout, func() error { return c.isReady(node) })
}

// isReady is nil if Kubernetes says that a node is Ready.
func (c *cluster) isReady(name string) error { return c.isReadySince(name, time.Time{}) }

// isReadySince is nil if a node is Ready by what its kubelet said after a time. A node that was off for less than the
// grace period of Kubernetes is still Ready when it boots, and turns NotReady a moment later if its kubelet is late.
func (c *cluster) isReadySince(name string, since time.Time) error {
	n, err := c.api.CoreV1().Nodes().Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, o := range n.Status.Conditions {
		if o.Type == corev1.NodeReady && o.Status == corev1.ConditionTrue && o.LastHeartbeatTime.After(since) {
			return nil
		}
	}
	return fmt.Errorf("node %s is not Ready since %s: %+v", name, since, n.Status.Conditions)
}

// TestAllNotReady: all nodes turn NotReady at once, as when no kubelet's lease arrives. Every address stays where it
// is, and pods go on with it; so it is when all are Ready again.
func TestAllNotReady(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1], c.nodes[2])
	ips := concat(c.number(222), c.number(223))
	e := c.egressIP(t, "all-notready", ips, n.itself(), metav1.LabelSelector{})
	n.runs(pod{name: "a", node: c.nodes[0], sends: true}, pod{name: "b", node: c.nodes[1], sends: true},
		pod{name: "c", node: c.nodes[2], sends: true})
	before, seen := e.ready(), c.capture(t)
	seen.flowing(c, n, []string{"a", "b", "c"}, time.Now(), soon)
	begin := time.Now()
	stays := func(when string) {
		t.Helper()
		o, err := e.get()
		must(t, err)
		if now := nodesOf(o); !maps.Equal(now, before) {
			t.Errorf("%s the addresses are on %v; they were on %v", when, now, before)
		}
	}
	for _, m := range c.nodes {
		t.Cleanup(func() { c.startKubelet(t, m.Name) })
		must(t, c.StopProcess(t.Context(), m.Name, "kubelet"))
	}
	for _, m := range c.nodes {
		within(t, notReadyTimeout, func() error {
			if c.isReady(m.Name) == nil {
				return fmt.Errorf("node %s is Ready without a kubelet", m.Name)
			}
			return nil
		})
	}
	stays("when no node is Ready")
	time.Sleep(watched)
	stays("when no node has been Ready for a while")
	for _, m := range c.nodes {
		c.startKubelet(t, m.Name)
	}
	stays("when all nodes are Ready again")
	seen.flowing(c, n, []string{"a", "b", "c"}, time.Now(), soon)
	seen.onlyFrom(n, ips)
	if lost := seen.lost(begin); lost.Gap > standstill {
		t.Errorf("traffic stood still: %s", lost)
	}
}
