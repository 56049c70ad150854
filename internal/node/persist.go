package node

import (
	"context"
	"time"
)

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
