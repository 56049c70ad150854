package harness

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/egret-net/egret/internal/kube"
)

const (
	leaseSpace = "kube-node-lease"
	// renewal leaves room for two rounds in the 8 s that the sandbox's node lifecycle controller waits.
	renewal = 3 * time.Second
	// FakeBootID is the boot id that fake nodes name.
	FakeBootID = "bench"
	// dead is the label of fake nodes that are to stay NotReady.
	dead = "bench-dead"
)

// FakeNode is a Node without a machine.
type FakeNode struct {
	Name        string
	Annotations map[string]string
	Labels      map[string]string
	Subnet      netip.Prefix // what the controller gave it
}

// EnsureFakeNodes makes Nodes that say Ready, renews their Leases until ctx ends, and waits for their pod subnets.
func (c *Cluster) EnsureFakeNodes(ctx context.Context, nodes []*FakeNode) error {
	err := Each(ctx, nodes, func(ctx context.Context, n *FakeNode) error {
		if err := c.renewLease(ctx, n.Name); err != nil {
			return err
		}
		_, err := c.Core.CoreV1().Nodes().Create(ctx, nodeObject(n), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("make fake nodes: %w", err)
	}
	go c.RenewLeases(ctx, nodes)
	return Until(ctx, 2*time.Minute, 500*time.Millisecond, func() error { return c.readSubnets(ctx, nodes) })
}

// repair posts the status of nodes again that a busy machine was too slow to keep alive, as a kubelet does: a Lease
// alone does not make a node Ready again.
func (c *Cluster) repair(ctx context.Context) error {
	list, err := c.Core.CoreV1().Nodes().List(ctx,
		metav1.ListOptions{LabelSelector: "bench=fake,!" + dead, ResourceVersion: "0"})
	if err != nil {
		return err
	}
	late := slices.DeleteFunc(list.Items, func(n corev1.Node) bool { return kube.Node(&n).Ready })
	return Each(ctx, late, func(ctx context.Context, n corev1.Node) error {
		for i := range n.Status.Conditions {
			if o := &n.Status.Conditions[i]; o.Type == corev1.NodeReady {
				o.Status, o.LastHeartbeatTime, o.LastTransitionTime = corev1.ConditionTrue, metav1.Now(), metav1.Now()
			}
		}
		_, err := c.Core.CoreV1().Nodes().UpdateStatus(ctx, &n, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return nil // somebody was faster: it is looked at again in the next round
		}
		return err
	})
}

func nodeObject(n *FakeNode) *corev1.Node {
	labels := map[string]string{"kubernetes.io/hostname": n.Name, "bench": "fake"}
	for k, v := range n.Labels {
		labels[k] = v
	}
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Bench",
		LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: labels, Annotations: n.Annotations},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{ready},
			NodeInfo: corev1.NodeSystemInfo{BootID: FakeBootID}},
	}
}

// RenewLeases goes on when one fails: it is renewed in the next round, before it is missed.
func (c *Cluster) RenewLeases(ctx context.Context, nodes []*FakeNode) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(renewal):
		}
		var failed atomic.Pointer[error]
		_ = Each(ctx, nodes, func(ctx context.Context, n *FakeNode) error {
			if err := c.renewLease(ctx, n.Name); err != nil {
				failed.Store(&err)
			}
			return nil
		})
		if err := c.repair(ctx); err != nil {
			failed.Store(&err)
		}
		if err := failed.Load(); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "keep fake nodes Ready:", *err)
		}
	}
}

func (c *Cluster) renewLease(ctx context.Context, node string) error {
	now := metav1.NowMicro()
	patch := fmt.Sprintf(`{"spec":{"renewTime":%q}}`, now.UTC().Format(metav1.RFC3339Micro))
	leases := c.Core.CoordinationV1().Leases(leaseSpace)
	_, err := leases.Patch(ctx, node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	seconds := int32(40)
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leaseSpace, Name: node}}
	l.Spec = coordinationv1.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: &seconds, RenewTime: &now}
	_, err = leases.Create(ctx, l, metav1.CreateOptions{})
	return err
}

func (c *Cluster) readSubnets(ctx context.Context, nodes []*FakeNode) error {
	list, err := c.Core.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "bench=fake"})
	if err != nil {
		return err
	}
	have := map[string]netip.Prefix{}
	for i := range list.Items {
		if n := kube.Node(&list.Items[i]); len(n.Subnets) > 0 {
			have[n.Name] = n.Subnets[0]
		}
	}
	for _, n := range nodes {
		if n.Subnet = have[n.Name]; !n.Subnet.IsValid() {
			return fmt.Errorf("node %s has no pod subnet yet", n.Name)
		}
	}
	return nil
}

// Die makes a fake node NotReady, just after asked, and keeps it so until it is revived.
func (c *Cluster) Die(ctx context.Context, node string) (asked time.Time, err error) {
	if err := c.LabelNode(ctx, node, dead, ""); err != nil { // or it would be repaired
		return asked, err
	}
	asked = time.Now()
	return asked, c.setReady(ctx, node, corev1.ConditionFalse)
}

// Revive makes it Ready again.
func (c *Cluster) Revive(ctx context.Context, node string) error {
	if err := c.setReady(ctx, node, corev1.ConditionTrue); err != nil {
		return err
	}
	return c.UnlabelNode(ctx, node, dead)
}

func (c *Cluster) setReady(ctx context.Context, node string, ready corev1.ConditionStatus) error {
	now := time.Now().UTC().Format(time.RFC3339)
	patch := fmt.Sprintf(
		`{"status":{"conditions":[{"type":"Ready","status":%q,"lastTransitionTime":%q,"lastHeartbeatTime":%q}]}}`,
		ready, now, now)
	_, err := c.Core.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, []byte(patch),
		metav1.PatchOptions{}, "status")
	return err
}

// RemoveFakeNodes removes them all.
func (c *Cluster) RemoveFakeNodes(ctx context.Context) error {
	return c.Core.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: "bench=fake"})
}
