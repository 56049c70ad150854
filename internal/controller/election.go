package controller

import (
	"context"
	"errors"
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

// A leader that could not renew for renewDeadline stops before another can start. The lease need not be shorter: the
// other controller does not wait for its end when the leader's node is dead.
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
	own.Dial = ends.dialNoting
	client, err := coordinationv1.NewForConfig(own)
	if err != nil {
		return fmt.Errorf("client for leases: %w", err)
	}
	e := newElection(client, identity, reach, who, ends)
	for ctx.Err() == nil {
		if err := e.standForElection(ctx); err != nil {
			return fmt.Errorf("leader election: %w", err)
		}
	}
	return nil
}

func newElection(
	client coordinationv1.LeasesGetter, identity string, reach Reach, who Candidate, ends *ends,
) *election {
	lease := &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: leaseSpace, Name: leaseName}, Client: client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}
	return &election{reach: reach, who: who, lock: lock{Interface: lease, reach: reach, ends: ends,
		taker: &atomic.Pointer[string]{}}}
}

// lock shows the lease of a leader whose node is dead as one that nobody holds. Of several who take it then the API
// server lets one. Whom nobody answers does not know who is dead now.
type lock struct {
	resourcelock.Interface
	reach Reach
	ends  *ends
	term  *term
	taker *atomic.Pointer[string] // the node that last took the lease from this one as from a dead one
}

// term is of one candidacy.
type term struct {
	leads, lost atomic.Bool
	end         func()
}

var errLost = errors.New("another node has taken the lease")

// Get ends the term of a leader from which the lease was taken. It must not take it back: client-go's elector would,
// where the taker counts as dead here, and both would lead for as long as that lasts.
func (l lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := l.Interface.Get(ctx)
	l.noteAPIAnswer(err)
	switch {
	case err != nil || r.HolderIdentity == l.Identity() || r.HolderIdentity == "":
	case l.term.leads.Load():
		l.taker.Store(&r.HolderIdentity)
		l.term.lost.Store(true)
		l.term.end()
	case l.isLeaderDead(r.HolderIdentity):
		r.HolderIdentity = ""
	}
	return r, raw, err
}

func (l lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Create(ctx, r)
	l.noteLeaseWrite(r, err)
	return err
}

// Update refuses what a lost term would write: client-go (0.37) releases what it last saw as its own.
func (l lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if l.term.lost.Load() {
		return errLost
	}
	err := l.Interface.Update(ctx, r)
	l.noteLeaseWrite(r, err)
	return err
}

func (l lock) noteLeaseWrite(r resourcelock.LeaderElectionRecord, err error) {
	l.noteAPIAnswer(err)
	if err == nil && r.HolderIdentity == l.Identity() {
		l.term.leads.Store(true)
	}
}

// noteAPIAnswer tells of an answer of the API server's machine: of those who have no lease to renew, it comes as often.
func (l lock) noteAPIAnswer(err error) {
	if e := l.ends.Load(); err == nil && e != nil {
		l.reach.Heard(e.own, e.other)
	}
}

// ends are those of the last connection to the API server.
type ends struct {
	atomic.Pointer[struct{ own, other netip.Addr }]
}

func (e *ends) dialNoting(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	own, _ := netip.ParseAddrPort(c.LocalAddr().String())
	other, _ := netip.ParseAddrPort(c.RemoteAddr().String())
	e.Store(&struct{ own, other netip.Addr }{own.Addr().Unmap(), other.Addr().Unmap()})
	return c, nil
}

// isLeaderDead says whether a leader's lease may be taken. Two nodes that do not hear each other hold each other for
// dead: the one that lost the lease to the other so leaves it there until it has heard that one, or it would go to and
// fro.
func (l lock) isLeaderDead(node string) bool {
	if taker := l.taker.Load(); taker != nil {
		if l.reach.Silent(*taker) {
			return false
		}
		l.taker.CompareAndSwap(taker, nil)
	}
	return !l.reach.CutOff() && l.reach.Silent(node)
}

type election struct {
	lock  lock
	reach Reach
	who   Candidate
}

// standForElection is one candidacy: until the lease is lost or given up, or there is a reason to ask for it at once.
func (e *election) standForElection(ctx context.Context) error {
	e.leaveToOthers(ctx)
	cutOff := e.reach.CutOff()
	standing, stop := context.WithCancel(ctx)
	defer stop()
	e.lock.term = &term{end: stop}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: e.lock, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		ReleaseOnCancel: true, Name: leaseName,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: e.who.Lead,
			OnStoppedLeading: func() {},
			OnNewLeader:      func(node string) { e.who.Led(ctx, node) },
		},
	})
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() { defer close(ended); e.watchReachability(standing, stop, elector, cutOff) }()
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

// watchReachability ends a candidacy that began cut off, or not, for reasons of reachability.
func (e *election) watchReachability(ctx context.Context, stop func(), elector *leaderelection.LeaderElector,
	wasCutOff bool) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.reach.Changed():
		}
		cutOff := e.reach.CutOff()
		if cutOff && !wasCutOff || !elector.IsLeader() && e.lock.isLeaderDead(elector.GetLeader()) {
			stop()
			return
		}
		wasCutOff = cutOff
	}
}
