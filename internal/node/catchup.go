package node

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/egret-net/egret/internal/world"
)

// readTimeout bounds a request to the API server that a pod's start waits for.
const readTimeout = 5 * time.Second

// reads are the requests by which a starting pod's node learns what was written before the pod was.
type reads struct{ namespace, egressIPs, traffic, egressServices, services *shared }

func newReads(api *API) reads {
	return reads{
		namespace: newShared(readTimeout, api.Namespace),
		egressIPs: newShared(readTimeout, func(ctx context.Context, _ string) error { return api.EgressIPs(ctx) }),
		traffic: newShared(readTimeout, func(ctx context.Context, _ string) error {
			return api.EgressIPTraffics(ctx)
		}),
		egressServices: newShared(readTimeout, api.EgressServices),
		services:       newShared(readTimeout, api.Services),
	}
}

// catchUp returns when the targets hold a namespace's labels, EgressIPs, EgressIPTraffics and the namespace's
// EgressServices with their Services, as they were in Kubernetes at some moment after the call. Watches of different
// resources are not ordered: a pod's may bring the pod before the namespace's brings the label that it was created
// under, and by the former label it would leave with its node's address. How far a watch is cannot be told from the
// pod's resourceVersion: Kubernetes orders versions of one resource only (KEP-5504).
//
// Without an answer the pod does not start; it could not be annotated then either. The kubelet tries again.
func (a *Agent) catchUp(ctx context.Context, namespace string) error {
	group, all := errgroup.WithContext(ctx)
	group.Go(func() error { return a.reads.namespace.doShared(all, namespace) })
	group.Go(func() error { return a.reads.egressIPs.doShared(all, "") })
	group.Go(func() error { return a.reads.traffic.doShared(all, "") })
	group.Go(func() error { return a.reads.egressServices.doShared(all, namespace) })
	err := group.Wait()
	if err == nil {
		err = a.applied(ctx)
	}
	if err == nil && a.hasEgressService(ctx, namespace) {
		err = a.reads.services.doShared(ctx, namespace) // which pods one is for is its Service's word
	}
	if err != nil {
		return fmt.Errorf("ask the API server which egress IP the pod has, is it reachable from this node? %w", err)
	}
	if err := a.applied(ctx); err != nil {
		return err
	}
	return a.loop.DoAndWait(ctx, func(*world.World) {})
}

// hasEgressService says whether a namespace has an EgressService; where nobody says, it may have.
func (a *Agent) hasEgressService(ctx context.Context, namespace string) bool {
	has := false
	err := a.loop.Ask(ctx, func(w *world.World) { has = w.EgressServiceIn(namespace) })
	return err != nil || has
}
