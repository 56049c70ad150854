package harness

import (
	"testing"
	"time"
)

// TestFirstChange: a transaction counts from when it is written, not one before it that is confirmed late.
func TestFirstChange(t *testing.T) {
	start := time.Unix(100, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	events := []zoneEvent{{at(-10), 5, 4}, {at(3), 5, 5}, {at(10), 6, 5}, {at(20), 7, 5}, {at(30), 7, 7},
		{at(40), 8, 8}}
	written, ready, ok := firstChange(events, start)
	if !ok || written != at(10) || ready != at(30) {
		t.Errorf("written %v, ready %v, %v; want %v, %v", written, ready, ok, at(10), at(30))
	}
	if _, _, ok := firstChange(events[:3], start); ok {
		t.Error("a change that no hypervisor has yet was taken for one that it has")
	}
}

// TestLastChange: what was written after the packet did not bring it about, though it is confirmed together with what
// did.
func TestLastChange(t *testing.T) {
	start := time.Unix(100, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	events := []zoneEvent{{at(1), 5, 4}, {at(3), 5, 5}, {at(10), 6, 5}, {at(30), 7, 5}, {at(40), 7, 7}}
	written, ready, ok := lastChange(events, at(20))
	if !ok || written != at(10) || ready != at(40) {
		t.Errorf("written %v, ready %v, %v; want %v, %v", written, ready, ok, at(10), at(40))
	}
}
