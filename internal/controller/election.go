package controller

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// A leader that could not renew for renewDeadline stops before another can start. The lease need not be shorter: who
// stands by does not wait for its end when the leader's node is dead.
const (
	leaseName     = "egret-controller"
	leaseSpace    = "egret-system"
	leaseDuration = 2 * time.Second
	renewDeadline = 1500 * time.Millisecond
	retryPeriod   = 300 * time.Millisecond
	// yieldPause is how long one that is cut off leaves the lease to others.
	yieldPause = leaseDuration
)

// Reach is what is known of nodes. Identities in the election are nodes' names.
type Reach interface {
	// Silent says whether a node is dead; CutOff, whether it is this one that nobody answers.
	Silent(node string) bool
	CutOff() bool
	// Changed tells of new answers.
	Changed() <-chan struct{}
	// Heard is told that a machine answered over a connection from an address of this host.
	Heard(from, machine netip.Addr)
}

// Candidate is who wants to lead.
type Candidate interface {
	// Lead leads until ctx is done.
	Lead(ctx context.Context)
	// Led is told on which node the one is that leads.
	Led(ctx context.Context, node string)
}

// Elect has the candidate lead while this process, under its identity, has the lease; again and again until ctx is
// done, and then it gives the lease back. It takes the lease at once from a leader whose node is dead. While this node
// is cut off another may see more: it gives the lease up, takes it from nobody, and leaves one that is free to others
// first. It has clients of its own, so that a burst of other requests does not delay a renewal.
func Elect(ctx context.Context, config *rest.Config, identity string, reach Reach, who Candidate) error {
	own := rest.CopyConfig(config)
	own.QPS, own.Burst, own.RateLimiter = 20, 40, nil
	own.Timeout = renewDeadline / 2
	ends := &ends{}
	own.Dial = ends.dial
	client, err := coordinationv1.NewForConfig(own)
	if err != nil {
		return fmt.Errorf("client for leases: %w", err)
	}
	e := election{reach: reach, who: who, lock: lock{reach: reach, ends: ends, Interface: &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: leaseSpace, Name: leaseName}, Client: client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}}}
	for ctx.Err() == nil {
		if err := e.stand(ctx); err != nil {
			return fmt.Errorf("leader election: %w", err)
		}
	}
	return nil
}

// lock shows the lease of a leader whose node is dead as one that nobody holds. Of several who take it then the API
// server lets one. Whom nobody answers does not know who is dead now.
type lock struct {
	resourcelock.Interface
	reach Reach
	ends  *ends
}

func (l lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := l.Interface.Get(ctx)
	l.heard(err)
	if err == nil && r.HolderIdentity != l.Identity() && l.dead(r.HolderIdentity) {
		r.HolderIdentity = ""
	}
	return r, raw, err
}

func (l lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Update(ctx, r)
	l.heard(err)
	return err
}

// heard tells of an answer of the API server's machine: of those who have no lease to renew, it comes as often.
func (l lock) heard(err error) {
	if e := l.ends.Load(); err == nil && e != nil {
		l.reach.Heard(e.own, e.other)
	}
}

// ends are those of the last connection to the API server.
type ends struct {
	atomic.Pointer[struct{ own, other netip.Addr }]
}

func (e *ends) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	own, _ := netip.ParseAddrPort(c.LocalAddr().String())
	other, _ := netip.ParseAddrPort(c.RemoteAddr().String())
	e.Store(&struct{ own, other netip.Addr }{own.Addr().Unmap(), other.Addr().Unmap()})
	return c, nil
}

func (l lock) dead(node string) bool { return !l.reach.CutOff() && l.reach.Silent(node) }

type election struct {
	lock  lock
	reach Reach
	who   Candidate
}

// stand is one candidacy: until the lease is lost or given up, or there is a reason to ask for it at once.
func (e *election) stand(ctx context.Context) error {
	e.leaveToOthers(ctx)
	cutOff := e.reach.CutOff()
	standing, stop := context.WithCancel(ctx)
	defer stop()
	var leads atomic.Bool
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: e.lock, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		ReleaseOnCancel: true, Name: leaseName,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { leads.Store(true); e.who.Lead(ctx) },
			OnStoppedLeading: func() {},
			OnNewLeader: func(node string) {
				if leads.Load() && node != e.lock.Identity() {
					stop() // somebody took the lease, because this node is dead to him
				}
				e.who.Led(ctx, node)
			},
		},
	})
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() { defer close(ended); e.watch(standing, stop, elector, cutOff) }()
	elector.Run(standing)
	stop()
	<-ended
	return nil
}

// leaveToOthers waits, as long as nobody answers this node, for somebody who sees more to take a lease that is free.
func (e *election) leaveToOthers(ctx context.Context) {
	over := time.After(yieldPause)
	for e.reach.CutOff() {
		select {
		case <-ctx.Done():
			return
		case <-over:
			return
		case <-e.reach.Changed():
		}
	}
}

// watch ends a candidacy that began cut off, or not, for reasons of reachability.
func (e *election) watch(ctx context.Context, stop func(), elector *leaderelection.LeaderElector, wasCutOff bool) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.reach.Changed():
		}
		cutOff := e.reach.CutOff()
		if cutOff && !wasCutOff || !elector.IsLeader() && e.lock.dead(elector.GetLeader()) {
			stop()
			return
		}
		wasCutOff = cutOff
	}
}
