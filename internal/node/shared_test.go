package node

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestSharedRequests: many callers make two requests: those who called while the first was under way share the second,
// for the first may have been answered with an older state.
func TestSharedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests, start := 0, time.Now()
		s := newShared(time.Minute, func(context.Context, string) error {
			requests++
			time.Sleep(time.Second)
			return nil
		})
		var callers sync.WaitGroup
		for _, answered := range []time.Duration{time.Second, 2 * time.Second, 2 * time.Second} {
			callers.Go(func() {
				if err := s.doShared(t.Context(), "a"); err != nil || time.Since(start) != answered {
					t.Errorf("answered after %v, want %v; error %v", time.Since(start), answered, err)
				}
			})
			time.Sleep(100 * time.Millisecond)
		}
		callers.Wait()
		synctest.Wait()
		if requests != 2 || len(s.keys) != 0 {
			t.Errorf("%d requests, %d keys left", requests, len(s.keys))
		}
	})
}

// TestSharedRequestEnds: a request that gets no answer ends, and so does a caller's wait for it, by whichever bound is
// shorter.
func TestSharedRequestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared(time.Minute, func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		})
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := s.doShared(short, "a"); err == nil || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if err := s.doShared(t.Context(), "a"); err == nil || time.Since(start) != 2*time.Minute {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}
