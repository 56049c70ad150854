package main

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	v1 "github.com/egret-net/egret/api/v1"
)

func TestQuantiles(t *testing.T) {
	s := sample{9, 1, 3, 7, 5, 8, 2, 4, 6, 10}
	if have, want := s.median(), 5.5; have != want {
		t.Errorf("median %v, want %v", have, want)
	}
	if have, want := s.quantile(0.9), 9.0; have != want {
		t.Errorf("nine of ten are at most %v, want %v", have, want)
	}
}

func TestBenchmarkLines(t *testing.T) {
	const output = "goos: linux\nBenchmarkFull-2   \t      33\t  41500000 ns/op\nBenchmarkOnePod-2\t 70000\t     15000 ns/op\nPASS\n"
	full, pod := benchmark(output, "BenchmarkFull"), benchmark(output, "BenchmarkOnePod")
	if len(full) != 1 || full[0] != 41.5 || len(pod) != 1 || pod[0] != 0.015 {
		t.Errorf("full %v, one pod %v, want [41.5] and [0.015]", full, pod)
	}
}

// TestFirstChange: a transaction counts from when it is written, not one before it that is confirmed late.
func TestFirstChange(t *testing.T) {
	start := time.Unix(100, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	events := []zoneEvent{{at(-10), 5, 4}, {at(3), 5, 5}, {at(10), 6, 5}, {at(20), 7, 5}, {at(30), 7, 7}, {at(40), 8, 8}}
	written, ready, ok := firstChange(events, start)
	if !ok || written != at(10) || ready != at(30) {
		t.Errorf("written %v, ready %v, %v; want %v, %v", written, ready, ok, at(10), at(30))
	}
	if _, _, ok := firstChange(events[:3], start); ok {
		t.Error("a change that no hypervisor has yet was taken for one that it has")
	}
}

// TestLastChange: what was written after the packet did not bring it about, though it is confirmed together with what did.
func TestLastChange(t *testing.T) {
	start := time.Unix(100, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	events := []zoneEvent{{at(1), 5, 4}, {at(3), 5, 5}, {at(10), 6, 5}, {at(30), 7, 5}, {at(40), 7, 7}}
	written, ready, ok := lastChange(events, at(20))
	if !ok || written != at(10) || ready != at(40) {
		t.Errorf("written %v, ready %v, %v; want %v, %v", written, ready, ok, at(10), at(40))
	}
}

// TestAlarms: an alarm counts as the machine's when a core has just stood still for long enough, in one piece or several.
func TestAlarms(t *testing.T) {
	raised := alarmsOf([]string{
		`n1: time=2026-01-01T00:00:10.000Z level=INFO msg="tunnel to another node" node=n2 state=down was=up`,
		`n1: time=2026-01-01T00:00:11.000Z level=INFO msg="tunnel to another node" node=n2 state=up was=down`,
		`n3: time=2026-01-01T00:00:20.000Z level=INFO msg="whether any node is heard" heard=false silent=2`,
		`n3: time=2026-01-01T00:00:21.000Z level=INFO msg="whether any node is heard" heard=true silent=1`,
	})
	if len(raised) != 2 || raised[1].Sub(raised[0]) != 10*time.Second {
		t.Fatalf("raised at %v", raised)
	}
	at := func(core int, before, took time.Duration) stall { return stall{core, raised[0].Add(-before), took} }
	for _, c := range []struct {
		stalls []stall
		want   int
	}{
		{nil, 2},
		{[]stall{at(0, 100*time.Millisecond, 160*time.Millisecond)}, 1},
		{[]stall{at(0, 100*time.Millisecond, 80*time.Millisecond), at(0, 300*time.Millisecond, 80*time.Millisecond)}, 1},
		{[]stall{at(0, 100*time.Millisecond, 80*time.Millisecond), at(1, 300*time.Millisecond, 80*time.Millisecond)}, 2},
		{[]stall{at(0, 2*time.Second, time.Second), at(0, -100*time.Millisecond, time.Second)}, 2},
	} {
		if have := unexplained(raised, c.stalls); len(have) != c.want {
			t.Errorf("stalls %v: %d alarms are not explained, want %d", c.stalls, len(have), c.want)
		}
	}
}

// TestConnections: lines of the pod's part become attempts, and what is asked of them is told by when they started.
func TestConnections(t *testing.T) {
	c := &ties{held: map[int]netip.Addr{}, broken: map[int]time.Time{}}
	for _, line := range []string{
		"held 0 5 172.18.0.33", "held 1 5 172.18.0.44", "new 10 12 172.18.0.33", "new 40 42 172.18.0.44", "new 20 320 -", "new 30 330 -", "broken 1 400", "new 50 51 172.18.0.33",
	} {
		c.note(strings.Fields(line))
	}
	all := c.since(time.Unix(0, 0))
	if failed(all) != 2 || len(all) != 5 {
		t.Errorf("%d of %d failed, want 2 of 5", failed(all), len(all))
	}
	if at, ok := firstAgain(all); !ok || at != time.Unix(0, 42) {
		t.Errorf("first again at %v, %v, want 42", at.UnixNano(), ok)
	}
	if at := noneFails(all, time.Unix(0, 0)); at != time.Unix(0, 40) {
		t.Errorf("none fails from %v, want 40", at.UnixNano())
	}
	if have := c.brokenOf([]int{0, 1}, time.Unix(0, 399)); have != 1 {
		t.Errorf("%d broken, want 1", have)
	}
	if have := c.brokenOf([]int{1}, time.Unix(0, 400)); have != 0 {
		t.Errorf("%d broken afterwards, want 0", have)
	}
}

// TestGoals: each number that a figure promises is compared by itself.
func TestGoals(t *testing.T) {
	r := result{runs: sample{1, 2, 3, 4, 5, 6, 7, 8, 9, 20}, p90: 9, max: 10}
	if have, want := r.goal(), "p90<=9 met, max<=10 MISSED"; have != want {
		t.Errorf("goal %q, want %q", have, want)
	}
	r = result{runs: sample{0, 0, 1}, none: true}
	if have, want := r.goal(), "max<=0 MISSED"; have != want {
		t.Errorf("goal %q, want %q", have, want)
	}
	r = result{runs: sample{30}, base: 10, ratio: 3}
	if have, want := r.goal(), "ratio<=3 met"; have != want {
		t.Errorf("goal %q, want %q", have, want)
	}
}

// TestWentDown: a session's number of changes counts ups as well as downs.
func TestWentDown(t *testing.T) {
	before := map[string]int{"a": 1, "b": 1, "c": 3, "d": 1}
	after := map[string]int{"a": 1, "b": 3, "c": 7}
	if have, want := wentDown(before, after), 0+1+2+1; have != want {
		t.Errorf("%d went down, want %d", have, want)
	}
}

// TestMoveCount: what is first heard of an address is no move; losing a node is one, and so is getting one.
func TestMoveCount(t *testing.T) {
	m := &moveCount{where: map[string]string{}}
	for _, node := range []string{"n1", "n1", "", "n2"} {
		e := &v1.EgressIP{Spec: v1.EgressIPSpec{EgressIPs: []string{"172.18.0.33"}}}
		if node != "" {
			e.Status.Items = []v1.EgressIPStatusItem{{Node: node, EgressIP: "172.18.0.33"}}
		}
		m.see(e, time.Now())
	}
	if have, want := m.number(), 2; have != want {
		t.Errorf("%d moves, want %d", have, want)
	}
}
