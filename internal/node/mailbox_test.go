package node

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// TestNewsAreCoalesced: news that come one at a time are delivered at once; of many, such as when each of 2,000
// addresses moves, the latest in some distance.
func TestNewsAreCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var delivered []int
		deliver := func(_ context.Context, n int) (string, error) {
			time.Sleep(5 * time.Millisecond) // an API server's answer
			delivered = append(delivered, n)
			return "", nil
		}
		m := newMailbox("a number", func(a, b int) bool { return a == b }, deliver,
			func(int, string) bool { return false }, slog.New(slog.DiscardHandler))
		go m.deliverUntilDone(t.Context())
		for n := range 10 {
			m.putValue(n)
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			if len(delivered) != n+1 {
				t.Fatalf("after %d news %d are delivered", n+1, len(delivered))
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		delivered = nil
		for n := range 2000 {
			m.putValue(10 + n)
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(delivered); n > newsAtOnce+10_000/100+1 || delivered[n-1] != 2009 {
			t.Errorf("of 2000 news in 10 s %d are delivered, the last is %d", n, delivered[n-1])
		}
	})
}
