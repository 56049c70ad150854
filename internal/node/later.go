package node

import (
	"context"
	"time"
)

// Failed work is repeated after firstRetry, and then at growing distances.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// writeTimeout bounds one request to the API server.
const writeTimeout = 5 * time.Second

// retryUntilDone tries until it succeeds, with growing distance as the loop repeats a round, and tells of each failure:
// on a busy machine an answer may be late. Its error is the last one, if ctx ends before that.
func retryUntilDone(ctx context.Context, failed func(error), try func(context.Context) error) error {
	for distance := firstRetry; ; distance = min(2*distance, lastRetry) {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		failed(err)
		select {
		case <-time.After(distance):
		case <-ctx.Done():
			return err
		}
	}
}

// forEachSignal calls f for each signal, until ctx ends or the channel is closed.
func forEachSignal(ctx context.Context, signal <-chan struct{}, f func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-signal:
			if !open {
				return
			}
			f()
		}
	}
}

// timeChannel gets a value at a time; never, if that is zero.
func timeChannel(t time.Time) <-chan time.Time {
	if t.IsZero() {
		return nil
	}
	return time.After(time.Until(t))
}

// earliestOf is that of some times; zero is never.
func earliestOf(times ...time.Time) (first time.Time) {
	for _, t := range times {
		if first.IsZero() || !t.IsZero() && t.Before(first) {
			first = t
		}
	}
	return first
}
