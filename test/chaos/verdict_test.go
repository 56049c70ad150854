package main

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/egret-net/egret/test/oracle"
	"github.com/egret-net/egret/test/traffic"
)

var (
	egressA, egressB = netip.MustParseAddr("172.18.0.70"), netip.MustParseAddr("172.18.0.80")
	nodeAddr         = netip.MustParseAddr("172.18.0.2")
	outside          = netip.MustParseAddr("172.18.0.100")
)

func second(s float64) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(s * float64(time.Second)))
}

// seen is a packet of a pod.
func seen(at float64, pod string, number int, src netip.Addr) traffic.Sighting {
	return traffic.Sighting{At: second(at), Pod: pod, Kind: "new", Number: number, Src: src, Dst: outside}
}

// testRecord has pod a of EgressIP A on n1, held by n2, and pod p without one on n1.
func testRecord(all ...traffic.Sighting) *record {
	slices.SortStableFunc(all, func(x, y traffic.Sighting) int { return x.At.Compare(y.At) })
	return &record{
		senders: map[string]*sender{
			"a": {name: "a", node: "n1", group: history[string]{{value: "A"}}},
			"x": {name: "x", node: "n1", group: history[string]{{value: exchanged[1]}}},
			"p": {name: "p", node: "n1", group: history[string]{{value: ""}}}},
		mayHave:   map[netip.Addr][]string{egressA: {"A"}, egressB: {"B"}},
		nodes:     map[string][]netip.Addr{"n1": {nodeAddr}},
		addresses: map[string]addresses{"A": {egressA}, "B": {egressB}},
		holders:   map[string]history[[]string]{"A": {{value: []string{"n2"}}}},
		seen:      all,
	}
}

// TestWrong: what the oracle calls wrong is told by pod, source and what would have been right.
func TestWrong(t *testing.T) {
	r := testRecord(seen(10, "a", 1, nodeAddr), seen(11, "a", 2, nodeAddr), seen(12, "a", 3, egressA),
		seen(13, "p", 1, egressB), seen(14, "other", 1, egressB))
	found, packets := r.wrong(func(x oracle.Packet) string {
		if x.Src == egressA || x.Dst != outside {
			return ""
		}
		return "another for " + x.Pod
	})
	want := []string{"2 new packets of a on n1 had source 172.18.0.2, number 1 at 00:16:50.000 to number 2 at " +
		"00:16:51.000; right was another for chaos/a", "1 new packets of p on n1 had source 172.18.0.80, number 1 at " +
		"00:16:53.000 to number 1 at 00:16:53.000; right was another for chaos/p"}
	if packets != 3 || !slices.Equal(found, want) {
		t.Errorf("%d wrong: %q, want 3: %q", packets, found, want)
	}
}

// TestRecovery: what runs no part of a pod's way leaves its node up to date.
func TestRecovery(t *testing.T) {
	for _, c := range []struct {
		fault  fault
		behind bool
	}{{fault{kind: kill, object: "egret-node"}, true}, {fault{kind: freeze, object: "kubelet"}, false},
		{fault{kind: power}, true}, {fault{kind: stop, object: "ovn-controller"}, true},
		{fault{kind: noAPI}, true}, {fault{kind: relabel}, false},
		{fault{kind: cordon, node: "n1"}, false}} {
		if _, behind := c.fault.recovery(); behind != c.behind {
			t.Errorf("%s: behind %v", c.fault, behind)
		}
	}
}

func TestLast(t *testing.T) {
	r := testRecord()
	if have := r.last(r.senders["a"]); !slices.Equal(have, addresses{egressA}) {
		t.Errorf("pod of A: %v in the end, want %v", have, egressA)
	}
	if have := r.last(r.senders["p"]); !slices.Equal(have, addresses{nodeAddr}) {
		t.Errorf("pod without EgressIP: %v in the end, want %v", have, nodeAddr)
	}
}

func TestLost(t *testing.T) {
	for _, c := range []struct {
		why           string
		fault         fault
		begin, end    float64
		pod           string
		lost, excused int
	}{
		{"nothing happened", fault{}, 500, 501, "a", 3, 0},
		{"its node", fault{kind: kill, node: "n1"}, 10, 12, "a", 0, 3},
		{"its node's kubelet", fault{kind: kill, node: "n1", object: "kubelet"}, 10, 12, "a", 3, 0},
		{"its node's kubelet stands still", fault{kind: freeze, node: "n1", object: "kubelet"}, 10, 12, "a", 0, 3},
		{"its holder's containerd", fault{kind: kill, node: "n2", object: "containerd"}, 10, 12, "a", 3, 0},
		{"its holder", fault{kind: power, node: "n2"}, 10, 12, "a", 0, 3},
		{"another node", fault{kind: power, node: "n3"}, 10, 12, "a", 3, 0},
		{"a holder of what does not serve it", fault{kind: power, node: "n2"}, 10, 12, "p", 3, 0},
		{"API outage", fault{kind: noAPI}, 10, 12, "a", 3, 0},
		{"its EgressIP", fault{kind: respec, object: "A"}, 10, 12, "a", 0, 3},
		{"another EgressIP", fault{kind: respec, object: "B"}, 10, 12, "a", 3, 0},
		{"its EgressIP is exchanged", fault{kind: exchange, object: "B"}, 10, 12, "a", 3, 0},
		{"its node's controller stands still", fault{kind: freeze, node: "n1", object: "egret-controller"}, 10, 12, "a",
			3, 0},
		{"its node's containerd is dead", fault{kind: stop, node: "n1", object: "containerd"}, 10, 12, "a", 0, 3},
		{"its holder, for long", fault{kind: stop, node: "n2", object: "egret-node"}, -70, 8, "a", 0, 3},
		{"itself", fault{kind: recreate, object: "a"}, 10, 12, "a", 0, 3},
		{"the other of two that exchange", fault{kind: exchange, object: exchanged[0]}, 10, 12, "x", 0, 3},
		{"long ago", fault{kind: kill, node: "n1"}, -60, -50, "a", 3, 0},
	} {
		r := testRecord(seen(10, c.pod, 1, egressA), seen(10.1, c.pod, 5, egressA), seen(10.2, c.pod, 6, egressA),
			seen(10.3, c.pod, 0, egressA))
		r.windows = []window{{c.fault, second(c.begin), second(c.end)}}
		if found, lost, excused := r.lost(); lost != c.lost || excused != c.excused ||
			(len(found) > 0) != (c.lost > 0) {
			t.Errorf("%s: lost %d %v, excused %d; want %d, %d", c.why, lost, found, excused, c.lost, c.excused)
		}
	}
}

func TestTwice(t *testing.T) {
	answer := func(at float64, mac string) traffic.Answer {
		return traffic.Answer{At: second(at), IP: egressA, MAC: mac}
	}
	r := testRecord()
	r.answers = []traffic.Answer{answer(1, "x"), answer(1.1, "x"), answer(1.2, "y"), answer(1.3, "y"), answer(2, "x"),
		answer(2.01, "y"), answer(40, "x"), answer(40.01, "y")}
	r.windows = []window{{fault{kind: cutFabric, node: "n2"}, second(38), second(39)},
		{fault{kind: noAPI}, second(0), second(3)},
		{fault{kind: power, node: "n3"}, second(1), second(3)}, // which does not hold it
		{fault{kind: respec, object: "B"}, second(1), second(3)},
		{fault{kind: kill, node: "n2", object: "kubelet"}, second(1), second(3)}}
	if found, excused, late := r.twice(100 * time.Millisecond); len(found) != 1 || excused != 1 ||
		late != 1010*time.Millisecond {
		t.Errorf("%v, %d excused, the last after %v; want that of second 2, and that of second 40 excused, a second "+
			"after the fault", found, excused, late)
	}
}

func TestGrown(t *testing.T) {
	was := map[string]float64{"rows of n1": 200, "flows of n1": 2000, "fds of n1": 40, "memory of n1": 100 << 20}
	for _, c := range []struct {
		name  string
		now   float64
		grown bool
	}{{"rows of n1", 209, false}, {"rows of n1", 220, true}, {"rows of n1", 180, true}, {"fds of n1", 20, false},
		{"fds of n1", 46, true},
		{"memory of n1", 108 << 20, false}, {"memory of n1", 120 << 20, true}, {"memory of n1", 1, false}} {
		now := map[string]float64{}
		for name, n := range was {
			now[name] = n
		}
		now[c.name] = c.now
		if have := len(grown(was, now)) > 0; have != c.grown {
			t.Errorf("%s is %f: grown %v", c.name, c.now, have)
		}
	}
}
