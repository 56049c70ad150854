package node

import (
	"context"
	"sync"
	"time"
)

// shared makes one request of many that ask for the same at the same time. A caller gets the answer to a request that
// began after it called: one that was under way may have been answered with an older state.
type shared struct {
	ask     func(ctx context.Context, key string) error
	timeout time.Duration

	mu   sync.Mutex
	keys map[string]*waiters
}

// waiters has the callers of one key who wait for the next request, while one is under way.
type waiters struct{ next *sharedAnswer }

type sharedAnswer struct {
	done chan struct{} // closed when err is there
	err  error
}

func newShared(timeout time.Duration, ask func(ctx context.Context, key string) error) *shared {
	return &shared{ask: ask, timeout: timeout, keys: map[string]*waiters{}}
}

// doShared waits for a request of that key, or the end of ctx. The request itself goes on for the others who wait for
// it.
func (s *shared) doShared(ctx context.Context, key string) error {
	a := s.joinRequest(key)
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *shared) joinRequest(key string) *sharedAnswer {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, busy := s.keys[key]
	if !busy {
		q = &waiters{}
		s.keys[key] = q
		defer func() { go s.askUntilAlone(key, q) }()
	}
	if q.next == nil {
		q.next = &sharedAnswer{done: make(chan struct{})}
	}
	return q.next
}

// askUntilAlone asks until nobody waits.
func (s *shared) askUntilAlone(key string, q *waiters) {
	for a := s.takeAwaited(key, q); a != nil; a = s.takeAwaited(key, q) {
		ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
		a.err = s.ask(ctx, key)
		cancel()
		close(a.done)
	}
}

// takeAwaited returns the awaited answer; callers that join from here on wait for the next one. Nil when nobody waits:
// then the queue is gone.
func (s *shared) takeAwaited(key string, q *waiters) *sharedAnswer {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := q.next
	q.next = nil
	if a == nil {
		delete(s.keys, key)
	}
	return a
}
