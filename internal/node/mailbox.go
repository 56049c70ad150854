package node

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/egret-net/egret/internal/heal"
	"github.com/egret-net/egret/internal/plane"
)

// Each delivery is the whole of a value, and the API server hands it on to every node. When many addresses move, a
// value changes with each of them: the first news go out at once, the rest in some distance.
const (
	newsAtOnce = 20
	newsApart  = 100 * time.Millisecond
)

// idle is how long a mailbox sleeps that has nothing to do.
const idle = time.Hour

// mailbox delivers the latest value to a slow receiver, in a goroutine of its own: the loop never waits for the API. A
// failed delivery is tried again, unless a newer value has come. A value that somebody else has overwritten is
// delivered again, with growing pauses.
type mailbox[T any] struct {
	what  string
	equal func(a, b T) bool
	// deliver returns the version that the receiver gave the value.
	deliver func(context.Context, T) (version string, err error)
	// overwritten reports whether the receiver shows something else than sent, in a version that follows the one that
	// sent was given.
	overwritten func(sent T, version string) bool
	log         *slog.Logger
	now         func() time.Time // of the clock
	pace        *rate.Limiter
	retry       time.Duration // after the next failure
	rewrites    heal.Pace     // of run alone

	mu      sync.Mutex
	latest  *T
	sent    *T
	version string // of sent
	wake    chan struct{}
}

func newMailbox[T any](what string, equal func(a, b T) bool, deliver func(context.Context, T) (string, error),
	overwritten func(sent T, version string) bool, log *slog.Logger) *mailbox[T] {
	return &mailbox[T]{what: what, equal: equal, deliver: deliver, overwritten: overwritten, log: log, now: time.Now,
		wake: make(chan struct{}, 1), pace: rate.NewLimiter(rate.Every(newsApart), newsAtOnce), retry: firstRetry}
}

// putValue sets the latest value. It also has a look taken at whether the one that was delivered stands.
func (m *mailbox[T]) putValue(v T) {
	m.mu.Lock()
	m.latest = &v
	m.mu.Unlock()
	plane.SignalOnce(m.wake)
}

func (m *mailbox[T]) deliverUntilDone(ctx context.Context) {
	timer := time.NewTimer(idle)
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		case <-timer.C:
		}
		timer.Reset(m.deliverDue(ctx))
	}
}

// deliverDue delivers what is due, and returns when to look again.
func (m *mailbox[T]) deliverDue(ctx context.Context) time.Duration {
	if v, _, wait := m.nextDue(m.now()); v == nil {
		return wait
	}
	if m.pace.Wait(ctx) != nil {
		return idle
	}
	v, again, wait := m.nextDue(m.now())
	if v == nil { // it is again what was delivered last
		return wait
	}
	if again {
		m.log.Warn("somebody else wrote over what was told to the API server; telling it again", "what", m.what)
		m.rewrites.Rewritten(m.now())
	}
	timed, cancel := context.WithTimeout(ctx, writeTimeout)
	version, err := m.deliver(timed, *v)
	cancel()
	if err != nil {
		m.log.Warn("could not tell the API server; will try again", "what", m.what, "error", err)
		wait, m.retry = m.retry, min(2*m.retry, lastRetry)
		return wait
	}
	m.markDelivered(v, version)
	m.retry = firstRetry
	_, _, wait = m.nextDue(m.now()) // it may have been written over before this knew its version
	return wait
}

// nextDue returns what is due to be delivered, and whether that is what was delivered before; or how long to wait.
func (m *mailbox[T]) nextDue(now time.Time) (v *T, again bool, wait time.Duration) {
	m.mu.Lock()
	latest, sent, version := m.latest, m.sent, m.version
	m.mu.Unlock()
	switch {
	case latest == nil:
	case sent == nil || !m.equal(*sent, *latest):
		return latest, false, 0
	case m.overwritten(*sent, version): // without the lock, which the loop takes: the function may wait for the loop
		if wait := m.rewrites.Wait(now); wait > 0 {
			return nil, false, wait
		}
		return latest, true, 0
	}
	return nil, false, idle
}

func (m *mailbox[T]) markDelivered(v *T, version string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent, m.version = v, version
}

// forgetSent has the latest value delivered again.
func (m *mailbox[T]) forgetSent() {
	m.mu.Lock()
	m.sent = nil
	m.mu.Unlock()
}
