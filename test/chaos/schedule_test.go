package main

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var testStage = stage{nodes: []string{"n1", "n2", "n3"}, pods: []string{"a1", "a2", "b1"},
	egressIPs: []string{"a", "b"}, controllers: 2}

func drawn(seed uint64) []fault {
	return schedule(rand.New(rand.NewPCG(seed, 0)), testStage, time.Minute)
}

func TestScheduleIsOfItsSeed(t *testing.T) {
	if !slices.Equal(drawn(1), drawn(1)) {
		t.Error("two schedules of one seed differ")
	}
	if slices.Equal(drawn(1), drawn(2)) {
		t.Error("schedules of two seeds are the same")
	}
}

// TestScheduleLeavesOne: while something happens one node is whole, and one controller reaches the API server. Two
// nodes are disturbed at once, and some faults are long.
func TestScheduleLeavesOne(t *testing.T) {
	seen, two, long := map[kind]bool{}, false, false
	for seed := range uint64(200) {
		all := drawn(seed)
		for i, f := range all {
			seen[f.kind], long = true, long || f.lasts > time.Minute
			if f.at <= 0 || f.at > time.Minute+longest || i > 0 && f.at < all[i-1].at {
				t.Errorf("seed %d: %s is at %s", seed, f, f.at)
			}
			if f.object == "egret-controller" && f.node == "n3" {
				t.Errorf("seed %d: %s, where there is none", seed, f)
			}
			disturbed, silent := under(all, f.at)
			if two = two || len(disturbed) == 2; len(disturbed) > 2 || silent["n1"] && silent["n2"] {
				t.Errorf("seed %d: at %s in %v, %v and no controller on %v", seed, f, f.at, disturbed, silent)
			}
		}
	}
	if !two || !long {
		t.Errorf("two nodes at once: %v, a long fault: %v", two, long)
	}
	for _, w := range weights {
		if !seen[w.kind] {
			t.Errorf("no schedule has %s", w.kind)
		}
	}
}

// under returns the nodes that are disturbed at a time, and those whose controller decides nothing.
func under(all []fault, at time.Duration) (disturbed, silent map[string]bool) {
	disturbed, silent = map[string]bool{}, map[string]bool{}
	for _, f := range all {
		if f.node != "" && f.at <= at && at < f.end() {
			disturbed[f.node] = true
			silent[f.node] = silent[f.node] || f.object == "egret-controller" || f.object == "ovs-vswitchd" ||
				slices.Contains([]kind{power, cutAPI, cutFabric, cutBoth}, f.kind)
		}
	}
	return disturbed, silent
}

func TestClashes(t *testing.T) {
	at := func(s int, f fault) fault { f.at, f.lasts = time.Duration(s)*time.Second, 4*time.Second; return f }
	for _, c := range []struct {
		why    string
		f, g   fault
		clashs bool
	}{
		{"two nodes", at(0, fault{kind: kill, node: "n1", object: "x"}),
			at(2, fault{kind: freeze, node: "n2", object: "x"}), false},
		{"two nodes, one after the other", at(0, fault{kind: kill, node: "n1"}), at(5, fault{kind: freeze, node: "n2"}),
			false},
		{"two processes of a node", at(0, fault{kind: kill, node: "n1", object: "x"}),
			at(2, fault{kind: freeze, node: "n1", object: "y"}), false},
		{"a process of a node without power", at(0, fault{kind: power, node: "n1"}),
			at(2, fault{kind: freeze, node: "n1", object: "y"}), true},
		{"a process without API server", at(0, fault{kind: noAPI}), at(2, fault{kind: freeze, node: "n1", object: "y"}),
			false},
		{"a label without API server", at(0, fault{kind: noAPI}), at(2, fault{kind: unlabel, node: "n1"}), true},
		{"a pod twice", at(0, fault{kind: relabel, object: "p"}), at(2, fault{kind: recreate, object: "p"}), true},
		{"an EgressIP that exchanges its address", at(0, fault{kind: exchange, object: exchanged[0]}),
			at(2, fault{kind: respec, object: exchanged[1]}), true},
		{"an EgressIP beside an exchange", at(0, fault{kind: exchange, object: exchanged[0]}),
			at(2, fault{kind: respec, object: "e"}), false},
		{"an EgressIP while a process is killed", at(0, fault{kind: respec, object: "e"}),
			at(2, fault{kind: kill, node: "n1", object: "y"}), false},
	} {
		if have := c.f.clashes(c.g); have != c.clashs || c.g.clashes(c.f) != have {
			t.Errorf("%s: clashes is %v", c.why, have)
		}
	}
}
