package controller

import (
	"testing"
	"time"
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
