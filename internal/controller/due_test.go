package controller

import (
	"log/slog"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/world"
)

// TestWaitsForWhatADecisionAsksFor: the time for which a decision asks for the next one is kept, not before the least
// distance between two decisions, and nothing is waited for where nothing was asked for.
func TestWaitsForWhatADecisionAsksFor(t *testing.T) {
	decided := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		asked time.Time
		want  time.Duration
	}{
		"nothing asked": {},
		"later":         {decided.Add(10 * time.Second), 10 * time.Second},
		"at once":       {decided.Add(-time.Second), coalesce},
	} {
		t.Run(name, func(t *testing.T) {
			loop := &Controller{decided: decided}
			loop.decideBy(c.asked)
			if wait := loop.untilAgain(); wait != c.want {
				t.Errorf("waits %v, want %v", wait, c.want)
			}
		})
	}
}

// TestDueThoughTheClockWasSetBack: deciders ask for times by the clock on the wall. Where that is set back by an hour,
// nothing waits for an hour.
func TestDueThoughTheClockWasSetBack(t *testing.T) {
	config := compiletest.Config(world.SharedGateway)
	c, now := New(config, all.ServedKinds(), nowhere{}, nowhere{}, NewMetrics(), slog.New(slog.DiscardHandler)),
		time.Now()
	c.outbox, c.synced = newOutbox(t.Context(), c.results), true
	c.decided = now
	c.decideBy(c.decideView(now).Now.Add(5 * time.Second))
	if wait := c.decideWhenDue(now); wait < 4*time.Second {
		t.Fatalf("waits %s at first", wait)
	}
	if c.decideWhenDue(now.Round(0).Add(-time.Hour)); !c.due.IsZero() {
		t.Errorf("a decision is due at %s, an hour off", c.due)
	}
}
