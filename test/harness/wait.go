package harness

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
)

// parallel bounds requests to the API server at one time.
const parallel = 16

// Until asks again and again, with a pause, until the answer is nil; after the limit the last answer is the error.
func Until(ctx context.Context, limit, pause time.Duration, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// SleepUntil returns at a time, or when ctx ends.
func SleepUntil(ctx context.Context, at time.Time) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Until(at)):
		return nil
	}
}

// Each does something with all items, several at a time.
func Each[T any](ctx context.Context, items []T, do func(context.Context, T) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, i := range items {
		g.Go(func() error { return do(ctx, i) })
	}
	return g.Wait()
}
