package main

import (
	"testing"
	"time"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/test/traffic"
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

// TestAlarms: an alarm counts as the machine's when a core has just stood still for long enough, in one piece or
// several.
func TestAlarms(t *testing.T) {
	raised := alarmsOf([]string{
		`n1: time=2026-01-01T00:00:10.000Z level=INFO msg="tunnel to another node" node=n2 state=down was=up`,
		`n1: time=2026-01-01T00:00:11.000Z level=INFO msg="tunnel to another node" node=n2 state=up was=down`,
		`n3: time=2026-01-01T00:00:20.000Z level=INFO msg="whether any other node answers" answers=false silent=2`,
		`n3: time=2026-01-01T00:00:21.000Z level=INFO msg="whether any other node answers" answers=true silent=1`,
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
		{[]stall{at(0, 100*time.Millisecond, 80*time.Millisecond), at(0, 300*time.Millisecond, 80*time.Millisecond)},
			1},
		{[]stall{at(0, 100*time.Millisecond, 80*time.Millisecond), at(1, 300*time.Millisecond, 80*time.Millisecond)},
			2},
		{[]stall{at(0, 2*time.Second, time.Second), at(0, -100*time.Millisecond, time.Second)}, 2},
	} {
		if have := unexplained(raised, c.stalls); len(have) != c.want {
			t.Errorf("stalls %v: %d alarms are not explained, want %d", c.stalls, len(have), c.want)
		}
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

// TestMoveCount: what first becomes known of an address is no move; losing a node is one, and so is getting one.
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

// TestResumed: a pod's datagrams come again at the end of their longest pause, whatever others send.
func TestResumed(t *testing.T) {
	cut := time.Unix(100, 0)
	at := func(pod string, after time.Duration) traffic.Sighting {
		return traffic.Sighting{Pod: pod, At: cut.Add(after)}
	}
	all := []traffic.Sighting{at("a", 5*time.Millisecond), at("b", 400*time.Millisecond), at("a", 900*time.Millisecond),
		at("a", time.Second), at("b", 5*time.Second), at("a", 1100*time.Millisecond)}
	have := resumed(all, cut, func(s traffic.Sighting) bool { return s.Pod == "a" })
	if want := cut.Add(900 * time.Millisecond); len(have) != 1 || have[traffic.Flow{Pod: "a"}] != want {
		t.Errorf("at %v, want %v", have, want)
	}
}
