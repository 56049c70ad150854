package node

import (
	"context"
	"sync"

	"github.com/egret-net/egret/internal/world"
)

// watchers are asked after each round. Each goroutine may add one.
type watchers struct {
	again func() // asks for a round

	mu    sync.Mutex
	asked []func(*world.World) bool
}

// askAfterRounds has f asked after each round until it answers true.
func (a *watchers) askAfterRounds(f func(*world.World) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, f)
}

func (a *watchers) askWatchers(w *world.World) {
	a.mu.Lock()
	asked := a.asked
	a.asked = nil
	a.mu.Unlock()
	for _, f := range asked {
		if !f(w) {
			a.askAfterRounds(f)
		}
	}
}

// askUntilFinal asks after each round, the next one first, until an answer is final, and returns the last answer. Its
// error is ctx's, if ctx ends before that.
func askUntilFinal[T any](ctx context.Context, a *watchers, ask func(*world.World) (answer T, final bool)) (T, error) {
	var mu sync.Mutex // a round may be at it when ctx ends
	var last T
	done := make(chan struct{})
	a.askAfterRounds(func(w *world.World) bool {
		if ctx.Err() != nil {
			return true
		}
		answer, final := ask(w)
		mu.Lock()
		last = answer
		mu.Unlock()
		if final {
			close(done)
		}
		return final
	})
	a.again() // a round, to ask in
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	mu.Lock()
	defer mu.Unlock()
	return last, err
}

// untilTrue returns when a condition holds.
func (a *watchers) untilTrue(ctx context.Context, holds func() bool) error {
	_, err := askUntilFinal(ctx, a, func(*world.World) (struct{}, bool) { return struct{}{}, holds() })
	return err
}
