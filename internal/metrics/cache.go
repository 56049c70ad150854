package metrics

import (
	"context"
	"errors"
	"sync"
	"time"
)

var errSlow = errors.New("there is no answer in time: a target that is read does not answer")

// cache makes an answer in one goroutine, when somebody asks and the last one is no longer fresh. How many ask does not
// matter.
type cache[T any] struct {
	ask   func() T
	asked chan struct{}

	mu   sync.Mutex
	last T
	at   time.Time
	next chan struct{} // closed when the next answer is there
}

func newCache[T any](ask func() T) *cache[T] {
	return &cache[T]{ask: ask, asked: make(chan struct{}, 1), next: make(chan struct{})}
}

// refreshUntilDone makes answers until ctx is done, one after the other, with a pause between them.
func (c *cache[T]) refreshUntilDone(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.asked:
		}
		c.putAnswer(c.ask())
		select {
		case <-ctx.Done():
			return
		case <-time.After(freshness):
		}
	}
}

func (c *cache[T]) putAnswer(v T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.next)
	c.last, c.at, c.next = v, time.Now(), make(chan struct{})
}

// latestAnswer is a fresh answer. The error says that none came in time.
func (c *cache[T]) latestAnswer(ctx context.Context) (T, error) {
	last, fresh, next := c.currentAnswer()
	if fresh {
		return last, nil
	}
	select {
	case c.asked <- struct{}{}:
	default: // somebody else has asked
	}
	ctx, cancel := context.WithTimeout(ctx, slowest)
	defer cancel()
	select {
	case <-next:
		last, _, _ = c.currentAnswer()
		return last, nil
	case <-ctx.Done():
		var none T
		return none, errSlow
	}
}

func (c *cache[T]) currentAnswer() (last T, fresh bool, next <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last, time.Since(c.at) < freshness, c.next
}
