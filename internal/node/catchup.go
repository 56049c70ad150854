package node

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/egret-net/egret/internal/feature"
	"github.com/egret-net/egret/internal/world"
)

// readTimeout bounds a request to the API server that a pod's start waits for.
const readTimeout = 5 * time.Second

// reads are the requests by which a starting pod's node learns what was written before the pod was.
type reads struct {
	namespace *shared
	lists     []wantedList
	// applied waits until the world has what the requests gave.
	applied func(context.Context) error
	loop    *Loop
}

// wantedList is one list that a feature asks for, by namespace.
type wantedList struct {
	feature.Read
	*shared
}

func newReads(api *API, wanted []feature.Read, applied func(context.Context) error, loop *Loop) reads {
	r := reads{namespace: newShared(readTimeout, api.Namespace), applied: applied, loop: loop}
	for _, read := range wanted {
		request := func(ctx context.Context, namespace string) error {
			return api.ReadNow(ctx, read.Resource, namespace)
		}
		r.lists = append(r.lists, wantedList{read, newShared(readTimeout, request)})
	}
	return r
}

// catchUp returns when the targets hold a namespace's labels and the objects that features read (feature.Read), as
// they were in Kubernetes at some moment after the call. Watches of different resources are not ordered: a pod's may
// bring the pod before the namespace's brings the label that it was created under, and by the former label it would
// leave with its node's address. How far a watch is cannot be told from the pod's resourceVersion: Kubernetes orders
// versions of one resource only (KEP-5504).
//
// Without an answer the pod does not start; it could not be annotated then either. The kubelet tries again.
func (r *reads) catchUp(ctx context.Context, namespace string) error {
	group, all := errgroup.WithContext(ctx)
	group.Go(func() error { return r.namespace.doShared(all, namespace) })
	r.readLists(all, group, namespace, func(l wantedList) bool { return l.If == nil })
	err := group.Wait()
	if err == nil {
		err = r.applied(ctx)
	}
	if err == nil {
		group, all = errgroup.WithContext(ctx)
		needed := func(l wantedList) bool { return l.If != nil && r.isNeeded(ctx, l, namespace) }
		r.readLists(all, group, namespace, needed)
		err = group.Wait()
	}
	if err != nil {
		return fmt.Errorf("ask the API server which egress IP the pod has, is it reachable from this node? %w", err)
	}
	if err := r.applied(ctx); err != nil {
		return err
	}
	return r.loop.DoAndWait(ctx, func(*world.World) {})
}

// caughtUp returns when the world has what requests gave. Between a restore of etcd and the list of a kind that
// follows, objects of that kind that they gave are not taken in.
func (a *Agent) caughtUp(ctx context.Context) error {
	if err := a.source.CheckListed(); err != nil {
		return err
	}
	return a.source.Applied(ctx)
}

// readLists asks for some of the lists.
func (r *reads) readLists(ctx context.Context, group *errgroup.Group, namespace string, is func(wantedList) bool) {
	for _, l := range r.lists {
		key := ""
		if l.InNamespace {
			key = namespace
		}
		if is(l) {
			group.Go(func() error { return l.doShared(ctx, key) })
		}
	}
}

// isNeeded says whether a namespace needs a list; if the loop does not answer, it does.
func (r *reads) isNeeded(ctx context.Context, l wantedList, namespace string) bool {
	is := false
	err := r.loop.Ask(ctx, func(w *world.World) { is = l.If(w, namespace) })
	return err != nil || is
}
