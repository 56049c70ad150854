package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AgentLeaseNamespace holds a Lease for each agent, by its node's name. Nothing else is there: an agent that may write
// Leases here may not write the one by which controllers choose their leader.
const AgentLeaseNamespace = "egret-node-lease"

// AgentLease is what an agent's Lease says.
type AgentLease struct {
	Version string // changes with each renewal
	Lasts   time.Duration
}

// RenewAgentLease says that a node's agent lives, for as long as a renewal lasts. The Node, by its UID, owns the
// Lease, so that it goes with the Node. The time in it is for people: readers count from when they see the renewal.
// last is the version that the last renewal returned; "": none did. If the Lease has an older one, or is gone, that is
// ErrLeaseWentBack. With a newer one the answer of a renewal was lost: nobody but the agent writes it.
func (c *Clients) RenewAgentLease(ctx context.Context, node, uid string, lasts time.Duration, now time.Time,
	last string) (version string, err error) {
	seconds, at := int32(lasts/time.Second), metav1.NewMicroTime(now)
	owners := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node, UID: types.UID(uid)}}
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: node, Namespace: AgentLeaseNamespace, OwnerReferences: owners},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: &seconds,
			RenewTime: &at},
	}
	metadata := map[string]any{"ownerReferences": owners}
	if last != "" {
		metadata["resourceVersion"] = last
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "spec": l.Spec})
	if err != nil {
		return "", err
	}
	version, err = c.patchLease(ctx, node, patch)
	switch {
	case last != "" && apierrors.IsConflict(err):
		if has, err := c.patchLease(ctx, node, []byte("{}")); err == nil && Older(last, has) {
			return c.RenewAgentLease(ctx, node, uid, lasts, now, has)
		}
		err = ErrLeaseWentBack
	case last != "" && apierrors.IsNotFound(err):
		err = ErrLeaseWentBack
	case apierrors.IsNotFound(err):
		created := &coordinationv1.Lease{}
		err = c.Coordination.Post().Namespace(AgentLeaseNamespace).Resource("leases").Body(l).Do(ctx).Into(created)
		version = created.ResourceVersion
	}
	if err != nil {
		return "", fmt.Errorf("renew Lease %s/%s: %w", AgentLeaseNamespace, node, err)
	}
	return version, nil
}

// patchLease returns the version that an agent's Lease has after a merge patch. An empty one reads it: agents may not
// get Leases.
func (c *Clients) patchLease(ctx context.Context, node string, patch []byte) (version string, err error) {
	l := &coordinationv1.Lease{}
	err = c.Coordination.Patch(types.MergePatchType).Namespace(AgentLeaseNamespace).Resource("leases").Name(node).
		Body(patch).Do(ctx).Into(l)
	return l.ResourceVersion, err
}

// ErrLeaseWentBack says that an agent's last renewal of its Lease is not in etcd: that was restored.
var ErrLeaseWentBack = errors.New("its last renewal is gone")

// AgentLeases returns all agents' Leases, by node, as they are now: a list without a resourceVersion is consistent.
func (c *Clients) AgentLeases(ctx context.Context) (map[string]AgentLease, error) {
	list := &coordinationv1.LeaseList{}
	err := c.Coordination.Get().Namespace(AgentLeaseNamespace).Resource("leases").Do(ctx).Into(list)
	if err != nil {
		return nil, fmt.Errorf("list Leases of agents: %w", err)
	}
	out := make(map[string]AgentLease, len(list.Items))
	for _, l := range list.Items {
		one := AgentLease{Version: l.ResourceVersion}
		if s := l.Spec.LeaseDurationSeconds; s != nil {
			one.Lasts = time.Duration(*s) * time.Second
		}
		out[l.Name] = one
	}
	return out, nil
}
