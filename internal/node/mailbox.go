package node

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// writeTimeout bounds one request to the API server.
const writeTimeout = 5 * time.Second

// What is delivered is the whole of a value, and the API server hands it on to every node. When many addresses move, a
// value changes with each of them: the first news go out at once, the rest in some distance.
const (
	newsAtOnce = 20
	newsApart  = 100 * time.Millisecond
)

// mailbox delivers the latest value to a slow receiver, in a goroutine of its own: the loop never waits for the API.
// What could not be delivered is tried again, unless a newer value has come.
type mailbox[T any] struct {
	what    string
	equal   func(a, b T) bool
	deliver func(context.Context, T) error
	log     *slog.Logger
	pace    *rate.Limiter

	mu     sync.Mutex
	latest *T
	sent   *T
	wake   chan struct{}
}

func newMailbox[T any](what string, equal func(a, b T) bool, deliver func(context.Context, T) error,
	log *slog.Logger) *mailbox[T] {
	return &mailbox[T]{what: what, equal: equal, deliver: deliver, log: log, wake: make(chan struct{}, 1),
		pace: rate.NewLimiter(rate.Every(newsApart), newsAtOnce)}
}

func (m *mailbox[T]) put(v T) {
	m.mu.Lock()
	m.latest = &v
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *mailbox[T]) run(ctx context.Context) {
	retry := firstRetry
	timer := time.NewTimer(time.Hour)
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		case <-timer.C:
		}
		if _, news := m.next(); !news {
			timer.Reset(time.Hour)
			continue
		}
		if m.pace.Wait(ctx) != nil {
			return
		}
		v, news := m.next()
		if !news { // it is again what was delivered last
			timer.Reset(time.Hour)
			continue
		}
		timed, cancel := context.WithTimeout(ctx, writeTimeout)
		err := m.deliver(timed, *v)
		cancel()
		if err != nil {
			m.log.Warn("could not tell the API server; will try again", "what", m.what, "error", err)
			timer.Reset(retry)
			retry = min(2*retry, lastRetry)
			continue
		}
		m.delivered(v)
		retry = firstRetry
		timer.Reset(time.Hour)
	}
}

func (m *mailbox[T]) next() (v *T, news bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.latest, m.latest != nil && (m.sent == nil || !m.equal(*m.sent, *m.latest))
}

func (m *mailbox[T]) delivered(v *T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent = v
}

// forget has the latest value delivered again.
func (m *mailbox[T]) forget() {
	m.mu.Lock()
	m.sent = nil
	m.mu.Unlock()
}
