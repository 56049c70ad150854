package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
)

// TestNodeDeleted: when a Node object is deleted its address moves, and the other nodes forget the node; it comes back
// when it starts anew, with pods that reach all others.
func TestNodeDeleted(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	n := c.namespace(t, nil)
	gone := c.nodes[2]
	c.labelEgress(t, gone)
	n.runs(pod{name: "a", node: c.nodes[0]})
	ips := c.number(47)
	e := c.egressIP(t, "deleted", ips, n.itself(), metav1.LabelSelector{})
	e.readyOn(gone)
	c.labelEgress(t, c.nodes[1])
	t.Cleanup(func() { c.registered(t, gone.Name) })
	if err := c.api.CoreV1().Nodes().Delete(t.Context(), gone.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	e.readyOn(c.nodes[1])
	e.tells(v1.EventMoved, "NodeDeleted")
	n.from("a").to(c.outside(0)).soonArrivesAs(ips...)
	for _, other := range c.nodes[:2] {
		within(t, soon, func() error { return c.forgotten(t, other.Name, gone.Name) })
	}
	c.registered(t, gone.Name)
	n.runs(pod{name: "c", node: gone})
	n.from("a").to(n.pod("c")).soonArrivesAs(n.ips["a"]...)
	n.from("c").to(c.outside(0)).soonArrivesAs(ips...)
}

// TestNodesAreRecorded: each node's addresses and its uplink's hardware address are recorded, as its agent names them.
func TestNodesAreRecorded(t *testing.T) {
	c := theCluster(t)
	for _, m := range c.nodes {
		within(t, soon, func() error {
			n := kube.Node(c.node(t, m.Name))
			if len(n.Record.Addrs) != len(n.Primary) || !n.UplinkMAC.IsValid() || n.Record.MAC != n.UplinkMAC {
				return fmt.Errorf("%s names %v and %s, recorded is %+v", m.Name, n.Primary, n.UplinkMAC, n.Record)
			}
			for i, p := range n.Primary {
				if n.Record.Addrs[i] != p.Addr() {
					return fmt.Errorf("%s names %v, recorded is %v", m.Name, n.Primary, n.Record.Addrs)
				}
			}
			return nil
		})
	}
}

// remnants finds what a zone still has of another node.
const remnants = `
ovn-nbctl --bare --columns=name list Logical_Switch_Port | grep "$1"
ovn-nbctl --bare --columns=ip_prefix,nexthop,external_ids list Logical_Router_Static_Route | grep "$1"
ovn-sbctl --bare --columns=name list Chassis | grep -x "$1"
true`

// forgotten is nil if a node's zone has nothing of another node.
func (c *cluster) forgotten(t *testing.T, at, node string) error {
	t.Helper()
	if left := c.on(t, at, "sh", "-c", remnants, "sh", node); left != "" {
		return fmt.Errorf("node %s still has this of %s: %s", at, node, left)
	}
	return nil
}

// registered has a node that was deleted start anew: its kubelet registers it, and what runs there gets tokens of the
// new object. Those of the former one died with it.
func (c *cluster) registered(t *testing.T, node string) {
	t.Helper()
	if c.isReady(node) == nil {
		return
	}
	if err := errors.Join(c.PowerOff(node), c.PowerOn(context.Background(), node)); err != nil {
		t.Fatal(err)
	}
	within(t, podsTimeout, func() error { return c.isReady(node) })
	within(t, podsTimeout, c.systemIsReady)
}

// systemIsReady is nil if all pods of the system run: some may have been on a node that was deleted.
func (c *cluster) systemIsReady() error {
	pods, err := c.api.CoreV1().Pods(metav1.NamespaceSystem).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, p := range pods.Items {
		ready := p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil
		for _, s := range p.Status.ContainerStatuses {
			ready = ready && s.Ready
		}
		if !ready {
			return fmt.Errorf("pod %s is not Ready", p.Name)
		}
	}
	if len(pods.Items) == 0 {
		return fmt.Errorf("namespace %s has no pods", metav1.NamespaceSystem)
	}
	return nil
}
