package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// resumer lists and watches for a reflector. Before a watch goes on where the last one ended it asks whether the API
// server has got that far: after a restore of etcd from a backup it has not, and yet takes a watch from a version in
// its future. It sends nothing until that version has passed, which may take days (kubernetes/kubernetes#107457, as of
// 1.37).
type resumer struct {
	*cache.ListWatch
	stream *stream
	forked func() // called when the API server's history is no longer the one that was followed
	listed bool   // a list has come, and no watch since: it goes on from what the API server itself has just said
	// refusable: the watch has a field selector that an API server with an earlier definition of the kind refuses.
	// refused: it has.
	refusable, refused bool
}

var _ cache.ListerWatcherWithContext = &resumer{}

// ListWithContext lists what is there now. A reflector's first list may be of any age, where the API server takes no
// watch that begins with a list (as 1.33 by default): a program that has started again would go by what it did not hold
// for true any more when others asked it.
func (r *resumer) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if o.ResourceVersion == "0" || r.stream.mustList() {
		o.ResourceVersion, o.Limit = "", 0 // further pages would come from etcd, not from its cache (1.31, 1.33)
	}
	ctx, stop := r.stream.beginRequest(ctx)
	defer stop()
	list, err := r.ListWatch.ListWithContext(ctx, o)
	if r.refusable && !r.refused && apierrors.IsBadRequest(err) {
		r.refused = true
		list, err = r.ListWatch.ListWithContext(ctx, o)
	}
	r.listed = err == nil
	return list, err
}

// WatchWithContext watches, or fails with "Expired", upon which the reflector lists. A watch that sends a list first
// needs no question: the API server refuses one from its future.
func (r *resumer) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	ctx, stop := r.stream.beginRequest(ctx)
	w, err := r.beginWatch(ctx, o)
	if err != nil {
		stop()
		return nil, err
	}
	r.stream.setStop(func() {
		w.Stop() // the events end before the request, whose end would be an error
		stop()
	})
	return w, nil
}

func (r *resumer) beginWatch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	resumes := o.SendInitialEvents == nil && o.ResourceVersion != "" && o.ResourceVersion != "0"
	switch relist := r.stream.mustList(); {
	case relist && resumes:
		return nil, apierrors.NewResourceExpired("the watch stood still")
	case relist:
		o.ResourceVersion = ""
	case resumes && !r.listed:
		if err := r.checkReached(ctx, o.ResourceVersion); err != nil {
			return nil, err
		}
	}
	r.listed = false
	return r.ListWatch.WatchWithContext(ctx, o)
}

// checkReached fails if the API server has not reached a version. A list without a resourceVersion is a consistent
// read: an API server that lags behind others answers with their version, too.
func (r *resumer) checkReached(ctx context.Context, version string) error {
	list, err := r.ListWatch.ListWithContext(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	if Older(m.GetResourceVersion(), version) {
		r.forked()
		return apierrors.NewResourceExpired(fmt.Sprintf("resourceVersion %s was seen, and the API server is at %s",
			version, m.GetResourceVersion()))
	}
	return nil
}
