package node

import (
	"context"
	"sync"

	"github.com/egret-net/egret/internal/world"
)

// askUntilFinal asks after each round, the next one first, until an answer is final, and returns the last answer. Its
// error is ctx's, if ctx ends before that.
func askUntilFinal[T any](ctx context.Context, a *Agent, ask func(*world.World) (answer T, final bool)) (T, error) {
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
	a.loop.Again() // a round, to ask in
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

// untilTrue is until for a condition.
func (a *Agent) untilTrue(ctx context.Context, holds func() bool) error {
	_, err := askUntilFinal(ctx, a, func(*world.World) (struct{}, bool) { return struct{}{}, holds() })
	return err
}
