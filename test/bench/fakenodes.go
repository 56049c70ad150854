package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/egret-net/egret/internal/kube"
)

const (
	leaseSpace = "kube-node-lease"
	// renewal is the kubelet's: the node lifecycle controller waits for 50 s.
	renewal    = 10 * time.Second
	fakeBootID = "bench"
	// parallel bounds requests to the API server at one time.
	parallel = 16
)

// fakeNode is a Node without a machine.
type fakeNode struct {
	name        string
	annotations map[string]string
	labels      map[string]string
	subnet      netip.Prefix // what the controller gave it
}

// ensureFakeNodes makes Nodes that say Ready, renews their Leases until ctx ends, and waits for their pod subnets.
func (c *cluster) ensureFakeNodes(ctx context.Context, nodes []*fakeNode) error {
	err := each(ctx, nodes, func(ctx context.Context, n *fakeNode) error {
		if err := c.renewLease(ctx, n.name); err != nil {
			return err
		}
		_, err := c.core.CoreV1().Nodes().Create(ctx, nodeObject(n), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("make fake nodes: %w", err)
	}
	go c.renewLeases(ctx, nodes)
	return until(ctx, 2*time.Minute, 500*time.Millisecond, func() error { return c.readSubnets(ctx, nodes) })
}

func nodeObject(n *fakeNode) *corev1.Node {
	labels := map[string]string{"kubernetes.io/hostname": n.name, "bench": "fake"}
	for k, v := range n.labels {
		labels[k] = v
	}
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Bench", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: labels, Annotations: n.annotations},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{ready}, NodeInfo: corev1.NodeSystemInfo{BootID: fakeBootID}},
	}
}

// renewLeases goes on when one fails: it is renewed in the next round, before it is missed.
func (c *cluster) renewLeases(ctx context.Context, nodes []*fakeNode) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(renewal):
		}
		var failed atomic.Pointer[error]
		_ = each(ctx, nodes, func(ctx context.Context, n *fakeNode) error {
			if err := c.renewLease(ctx, n.name); err != nil {
				failed.Store(&err)
			}
			return nil
		})
		if err := failed.Load(); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "bench: renew Leases of fake nodes:", *err)
		}
	}
}

func (c *cluster) renewLease(ctx context.Context, node string) error {
	now := metav1.NowMicro()
	patch := fmt.Sprintf(`{"spec":{"renewTime":%q}}`, now.UTC().Format(metav1.RFC3339Micro))
	leases := c.core.CoordinationV1().Leases(leaseSpace)
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

func (c *cluster) readSubnets(ctx context.Context, nodes []*fakeNode) error {
	list, err := c.core.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "bench=fake"})
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
		if n.subnet = have[n.name]; !n.subnet.IsValid() {
			return fmt.Errorf("node %s has no pod subnet yet", n.name)
		}
	}
	return nil
}

// removeFakeNodes removes them all.
func (c *cluster) removeFakeNodes(ctx context.Context) error {
	return c.core.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "bench=fake"})
}

// each does something with all items, several at a time.
func each[T any](ctx context.Context, items []T, do func(context.Context, T) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, i := range items {
		g.Go(func() error { return do(ctx, i) })
	}
	return g.Wait()
}
