package egressip_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/world"
)

// patient is a controller's clock and world.
type patient struct {
	w   *world.World
	p   *egressip.Patience
	now time.Time
}

func newPatient(nodes ...string) *patient {
	x := &patient{w: newWorld(), p: egressip.NewPatience(), now: time.Unix(1000, 0)}
	for i, n := range nodes {
		x.w.SetNode(node(n, i+2, netip.PrefixFrom(world.Nth(netip.MustParsePrefix("172.18.0.0/24"), i+2), 24).String()))
	}
	x.w.SetEgressIP(object("e", 0, "172.18.0.33"))
	return x
}

// after lets time pass, looks at every moment at which it was asked for, and decides.
func (x *patient) after(d time.Duration) egressip.Decision {
	end := x.now.Add(d)
	for {
		x.p.Look(x.w, x.now)
		decided := decideAt(x.w, x.now)
		write(x.w, decided)
		_, again := x.p.Look(x.w, x.now)
		if again.IsZero() || again.After(end) {
			x.now = end
			return decided["e"]
		}
		x.now = again
	}
}

// TestNodeThatNeverHolds: after 5 s people are told, after 10 s another node is chosen; the first is given nothing new while others can take it.
func TestNodeThatNeverHolds(t *testing.T) {
	x := newPatient("n1", "n2", "n3")
	if d := x.after(4900 * time.Millisecond); items(d) != "n1=172.18.0.33" || strings.Contains(conditionOf(d, "Ready").Message, "more than") {
		t.Fatalf("at first: %s, %s", items(d), conditionOf(d, "Ready").Message)
	}
	d := x.after(200 * time.Millisecond)
	if c := conditionOf(d, "Ready"); !strings.Contains(c.Message, "n1 does not hold 172.18.0.33 yet, for more than 5s: see whether") {
		t.Errorf("after 5 s: %+v", c)
	}
	if len(d.Events) != 1 || d.Events[0].Reason != egressip.EventNodeProblem || !d.Events[0].Warning {
		t.Errorf("events after 5 s: %+v", d.Events)
	}
	d = x.after(5 * time.Second)
	if items(d) != "n2=172.18.0.33" {
		t.Fatalf("after 10 s: %s", items(d))
	}
	if !slices.ContainsFunc(d.Events, func(e egressip.Event) bool { return e.Message == "172.18.0.33 moves from n1 (NotHeld) to n2" }) {
		t.Errorf("events after 10 s: %+v", d.Events)
	}
	hold(x.w, "n2", map[string][]netip.Addr{"e": {addr("172.18.0.33")}})
	x.w.SetEgressIP(object("late", -1, "172.18.0.44"))
	x.after(time.Second)
	now := x.w.EgressIP("late").Items
	if len(now) != 1 || now[0].Node == "n1" {
		t.Fatalf("the next address goes to %v", now)
	}
	hold(x.w, now[0].Node, map[string][]netip.Addr{"e": {addr("172.18.0.33")}, "late": {addr("172.18.0.44")}})
	x.after(5 * time.Minute)
	if late := x.w.TooLate(); late["n1"] {
		t.Error("n1 is not forgiven after five minutes")
	}
}

// TestNobodyElseCanHold: where no other node can take it, an address stays where it is, and does not go to and fro.
func TestNobodyElseCanHold(t *testing.T) {
	for _, nodes := range [][]string{{"n1"}, {"n1", "n2"}} {
		x := newPatient(nodes...)
		x.after(40 * time.Second)
		was := items(x.after(0))
		for range 60 {
			if d := x.after(time.Second); items(d) != was {
				t.Fatalf("%v: moves from %s to %s", nodes, was, items(d))
			}
		}
	}
}

// TestForget: a controller that no longer decides leaves nothing behind.
func TestForget(t *testing.T) {
	x := newPatient("n1")
	x.after(20 * time.Second)
	if !x.w.TooLate()["n1"] {
		t.Fatal("n1 is not too late")
	}
	if x.p.Forget(x.w); x.w.TooLate()["n1"] {
		t.Error("it still is")
	}
}
