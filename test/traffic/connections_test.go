package traffic

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestConnections: lines of the pod's part become attempts, and what is asked of them is told by when they started.
func TestConnections(t *testing.T) {
	c := &Connections{held: map[int]netip.Addr{}, broken: map[int]time.Time{}}
	for _, line := range []string{
		"held 0 5 172.18.0.33", "held 1 5 172.18.0.44", "new 10 12 172.18.0.33", "new 40 42 172.18.0.44",
		"new 20 320 -", "new 30 330 -", "broken 1 400", "new 50 51 172.18.0.33",
	} {
		c.note(strings.Fields(line))
	}
	all := c.Since(time.Unix(0, 0))
	if Failed(all) != 2 || len(all) != 5 {
		t.Errorf("%d of %d failed, want 2 of 5", Failed(all), len(all))
	}
	if at, ok := FirstAgain(all); !ok || at != time.Unix(0, 42) {
		t.Errorf("first again at %v, %v, want 42", at.UnixNano(), ok)
	}
	if at := NoneFails(all, time.Unix(0, 0)); at != time.Unix(0, 40) {
		t.Errorf("none fails from %v, want 40", at.UnixNano())
	}
	if have := c.BrokenOf([]int{0, 1}, time.Unix(0, 399)); have != 1 {
		t.Errorf("%d broken, want 1", have)
	}
	if have := c.BrokenOf([]int{1}, time.Unix(0, 400)); have != 0 {
		t.Errorf("%d broken afterwards, want 0", have)
	}
}
