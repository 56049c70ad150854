package controller

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// The lease is short, because a failover waits for it. A leader that could not renew for renewDeadline stops before another can start.
const (
	leaseName     = "egret-controller"
	leaseSpace    = "egret-system"
	leaseDuration = 2 * time.Second
	renewDeadline = 1500 * time.Millisecond
	retryPeriod   = 300 * time.Millisecond
)

// Elect calls lead with a context that lasts as long as this process, under its identity, has the lease; again and again until ctx
// is done, and then it gives the lease back. It has clients of its own, so that a burst of other requests does not delay a renewal.
func Elect(ctx context.Context, config *rest.Config, identity string, lead func(context.Context)) error {
	own := rest.CopyConfig(config)
	own.QPS, own.Burst, own.RateLimiter = 20, 40, nil
	own.Timeout = renewDeadline / 2
	client, err := coordinationv1.NewForConfig(own)
	if err != nil {
		return fmt.Errorf("client for leases: %w", err)
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: leaseSpace, Name: leaseName}, Client: client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true, Name: leaseName,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: lead, OnStoppedLeading: func() {}},
	})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	for ctx.Err() == nil {
		elector.Run(ctx)
	}
	return nil
}
