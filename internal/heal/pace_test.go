package heal

import (
	"testing"
	"time"
)

// TestPausesGrow: the first rewrite waits for nothing, some for a second, each next one longer. After a rest it begins
// again.
func TestPausesGrow(t *testing.T) {
	var p Pace
	now := time.Unix(1000, 0)
	for i, want := range []time.Duration{0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 16, 30, 30} {
		wait := p.Wait(now)
		if wait != want*time.Second {
			t.Errorf("rewrite %d waits %v, want %v", i, wait, want*time.Second)
		}
		now = now.Add(wait)
		p.Rewritten(now)
	}
	if now = now.Add(2*LastPause - 1); p.Rested(now) {
		t.Error("it has rested too early")
	}
	if now = now.Add(1); !p.Rested(now) || p.Wait(now) != 0 {
		t.Error("it has not rested")
	}
	if p.Rewritten(now); p.Wait(now) != FirstPause {
		t.Errorf("after a rest the pause is %v, want %v", p.Wait(now), FirstPause)
	}
}
