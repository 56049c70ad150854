package node

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/ovn"
	"github.com/egret-net/egret/internal/world"
)

// lagging does what ovn.Plane.syncRows does: hypervisors are `lag` behind what was written.
type lagging struct {
	*ovn.Fake
	l      *Loop
	lag    time.Duration
	rows   int
	at     time.Time
	shrunk atomic.Int32
}

func (p *lagging) Grow(ctx context.Context, want *plan.State) error {
	waits := func() bool { return !p.at.IsZero() && time.Since(p.at) < p.lag }
	if waits() && time.Since(p.at) < 2*time.Second {
		return plane.ErrUnconfirmed
	}
	n := 0
	for range want.NB.Rows() {
		n++
	}
	for range want.SetElems.Rows() {
		n++
	}
	if n != p.rows {
		p.rows, p.at = n, time.Now()
		if err := p.Fake.Grow(ctx, want); err != nil {
			return err
		}
		time.AfterFunc(p.lag, p.l.Confirmed)
	}
	if waits() {
		return plane.ErrUnconfirmed
	}
	return nil
}

func (p *lagging) Shrink(ctx context.Context, want *plan.State) error {
	p.shrunk.Add(1)
	return p.Fake.Shrink(ctx, want)
}

// TestChangesWithoutEnd: pods come one each 60 ms, and hypervisors need 100 ms for a transaction. What was written is
// confirmed all the same, and who waits for it gets an answer.
func TestChangesWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLoop(compiletest.Small("n1", world.SharedGateway), all.Features(), slog.New(slog.DiscardHandler))
		target := &lagging{Fake: ovn.NewFake(), l: l, lag: 100 * time.Millisecond}
		l.Planes = []plane.Plane{target}
		go l.RunRounds(t.Context())
		l.Synced()
		time.Sleep(time.Second)
		shrunk := target.shrunk.Load()
		waited := make(chan time.Duration, 1)
		start := time.Now()
		go func() {
			if l.DoAndWait(t.Context(), setPod(0)) == nil {
				waited <- time.Since(start)
			}
		}()
		for i := 1; time.Since(start) < 10*time.Second; i++ {
			l.Do(setPod(i))
			time.Sleep(60 * time.Millisecond)
		}
		select {
		case d := <-waited:
			if d > time.Second {
				t.Errorf("the first pod waited %v", d)
			}
		default:
			t.Error("the first pod still waits")
		}
		if target.shrunk.Load()-shrunk < 10 {
			t.Errorf("%d times something was removed in ten seconds", target.shrunk.Load()-shrunk)
		}
	})
}
