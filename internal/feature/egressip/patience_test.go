package egressip_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/decide/patience"
	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/world"
)

// patient is a controller's clock and world.
type patient struct {
	w   *world.World
	p   *patience.Patience
	now time.Time
	// last is what was decided last.
	last map[string]egressip.Decision
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
		x.p.Look(x.w, slices.Values(x.w.EgressIPs()), x.items, x.w.PlacementOf, x.now)
		decided := decideWith(x.w, egressip.Beside{Patience: x.p, Last: x.last, Now: x.now})
		x.last = decided
		write(x.w, decided)
		again := x.p.Look(x.w, slices.Values(x.w.EgressIPs()), x.items, x.w.PlacementOf, x.now)
		awaited := func(name string) []string { return decided[name].Awaited }
		changed, next := x.p.Await(awaited, maps.Keys(decided), x.now)
		if again = sooner(sooner(again, next), decided["e"].Again); changed {
			continue
		}
		if again.IsZero() || again.After(end) {
			x.now = end
			return decided["e"]
		}
		x.now = again
	}
}

func (x *patient) items(name string) []world.Assignment { return x.w.PlacementOf(name).Items }

func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func tooLate(p *patience.Patience, node string) bool {
	for _, nodes := range p.TooLate() {
		if _, is := nodes[node]; is {
			return true
		}
	}
	return false
}

// TestNeitherCanHold: two nodes that both cannot hold an address do not hand it to and fro as long as they stand; the
// condition names both, with their reasons.
func TestNeitherCanHold(t *testing.T) {
	t.Parallel()
	x := newPatient("n1", "n2")
	for node, why := range map[string]string{"n1": "nb refused it", "n2": "northd is dead"} {
		x.w.SetHolding(&world.Holding{Node: node, BootID: "boot", Problems: map[string]string{"e": why}})
	}
	was, moves := items(x.after(0)), []int{}
	for second := range 24 * 3600 {
		d := x.after(time.Second)
		if items(d) != was {
			was, moves = items(d), append(moves, second)
		}
	}
	if len(moves) > 45 || len(moves) < 5 || moves[2]-moves[1] < 290 || moves[len(moves)-1]-moves[len(moves)-3] < 2390 {
		t.Errorf("%d moves in a day, at seconds %v", len(moves), moves)
	}
	text := conditionOf(x.after(0), "Ready").Message
	if !strings.Contains(text, "does not hold 172.18.0.33 yet, for more than 5s: ") ||
		!strings.Contains(text, "; neither did n") ||
		!strings.Contains(text, "nb refused it") || !strings.Contains(text, "northd is dead") {
		t.Errorf("condition: %q", text)
	}
}

// TestManyAtOnce: a node that is given many addresses at once has longer for them, for OVN confirms them together.
func TestManyAtOnce(t *testing.T) {
	x := &patient{w: newWorld(), p: egressip.NewPatience(), now: time.Unix(1000, 0)}
	x.w.SetNode(node("n1", 2, "172.18.0.2/16"))
	x.w.SetNode(node("n2", 3, "172.18.0.3/16"))
	x.w.SetEgressIP(object("e", 0, "172.18.255.1"))
	for i := range 3999 { // 2,000 a node
		x.w.SetEgressIP(object(fmt.Sprint("e", i), -1, fmt.Sprintf("172.18.%d.%d", 1+i/250, 1+i%250)))
	}
	x.after(0)
	if d := x.after(14 * time.Second); len(x.p.TooLate()) > 0 || len(d.Events) > 0 {
		t.Errorf("after 14 s %d addresses count as too late, events %v", len(x.p.TooLate()), d.Events)
	}
	if x.after(16 * time.Second); len(x.p.TooLate()) != 4000 {
		t.Errorf("after 30 s %d addresses count as too late", len(x.p.TooLate()))
	}
}

// TestPodsNodeWithoutAgent: nobody probes it, and Ready does not wait for it for ever; it does for one that says what
// keeps it.
func TestPodsNodeWithoutAgent(t *testing.T) {
	x := newPatient("n1", "n2")
	x.w.SetNamespace(&world.Namespace{Name: "ns"})
	x.w.SetPod(&world.Pod{Namespace: "ns", Name: "a", Node: "n2", IPs: []netip.Addr{addr("10.244.1.5")}, Running: true})
	x.after(4 * time.Second)
	report(x.w, "n1", "172.18.0.33") // the time begins when the address is held
	d := x.after(29 * time.Second)
	if c := conditionOf(d, "Ready"); c.Status != "False" ||
		c.Message != "n2 does not lead its pods there over IPv4 yet" {
		t.Errorf("after 29 s: %+v", c)
	}
	const silent = "; n2 has not confirmed for 30s that it leads its pods there over IPv4: see whether egret-node " +
		"runs there"
	d = x.after(2 * time.Second)
	for _, kind := range []string{"Ready", "InForce"} {
		if c := conditionOf(d, kind); c.Status != "True" || !strings.HasSuffix(c.Message, silent) {
			t.Errorf("after 31 s: %+v", c)
		}
	}
	x.w.SetHolding(&world.Holding{Node: "n2", BootID: "boot", Problems: map[string]string{"e": "nb refused it"}})
	if c := conditionOf(x.after(time.Minute), "Ready"); c.Status != "False" ||
		c.Message != "n2 does not lead its pods there over IPv4 yet: nb refused it" {
		t.Errorf("its agent is back, and says why: %+v", c)
	}
	report(x.w, "n2", "", world.Assignment{Node: "n1", IP: addr("172.18.0.33")})
	if c := conditionOf(x.after(time.Second), "Ready"); c.Status != "True" ||
		c.Message != "selected pods leave with 172.18.0.33 on n1" {
		t.Errorf("it has confirmed: %+v", c)
	}
	report(x.w, "n2", "")
	if c := conditionOf(x.after(time.Second), "Ready"); c.Status != "False" {
		t.Errorf("it does so no longer, and is not waited for: %+v", c)
	}
}

// TestPodsNodeNotReady: a node that is not ready is not waited for, and people are told that nobody knows what its pods
// leave with, until it confirms.
func TestPodsNodeNotReady(t *testing.T) {
	x := newPatient("n1", "n2")
	n2 := *x.w.Node("n2")
	n2.Ready = false
	x.w.SetNode(&n2)
	x.w.SetNamespace(&world.Namespace{Name: "ns"})
	x.w.SetPod(&world.Pod{Namespace: "ns", Name: "a", Node: "n2", IPs: []netip.Addr{addr("10.244.1.5")}, Running: true})
	x.after(0)
	report(x.w, "n1", "172.18.0.33")
	const unasked = "; not known of n2, not ready or not reached, where pods may send as before"
	d := x.after(time.Second)
	for _, kind := range []string{"Ready", "InForce"} {
		if c := conditionOf(d, kind); c.Status != "True" || !strings.HasSuffix(c.Message, unasked) {
			t.Errorf("%+v", c)
		}
	}
	again := n2
	again.Ready = true
	x.w.SetNode(&again)
	if c := conditionOf(x.after(time.Second), "Ready"); c.Status != "False" ||
		c.Message != "n2 does not lead its pods there over IPv4 yet" {
		t.Errorf("it is ready again: %+v", c)
	}
	x.w.SetNode(&n2)
	report(x.w, "n2", "", world.Assignment{Node: "n1", IP: addr("172.18.0.33")})
	if c := conditionOf(x.after(time.Second), "Ready"); c.Message != "selected pods leave with 172.18.0.33 on n1" {
		t.Errorf("it has confirmed: %+v", c)
	}
}

// TestNodeThatNeverHolds: after 5 s people are told, after 10 s another node is chosen; the first is given nothing new
// while others can take it.
func TestNodeThatNeverHolds(t *testing.T) {
	x := newPatient("n1", "n2", "n3")
	if d := x.after(4900 * time.Millisecond); items(d) != "n1=172.18.0.33" ||
		strings.Contains(conditionOf(d, "Ready").Message, "more than") {
		t.Fatalf("at first: %s, %s", items(d), conditionOf(d, "Ready").Message)
	}
	d := x.after(200 * time.Millisecond)
	if c := conditionOf(d, "Ready"); !strings.Contains(c.Message,
		"n1 does not hold 172.18.0.33 yet, for more than 5s: see whether") {
		t.Errorf("after 5 s: %+v", c)
	}
	if len(d.Events) != 1 || d.Events[0].Reason != egressip.EventNodeProblem || !d.Events[0].Warning {
		t.Errorf("events after 5 s: %+v", d.Events)
	}
	d = x.after(5 * time.Second)
	if items(d) != "n2=172.18.0.33" {
		t.Fatalf("after 10 s: %s", items(d))
	}
	if !slices.Contains(messages(d), "172.18.0.33 moves from n1 (NotHeld) to n2") {
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
	if tooLate(x.p, "n1") {
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

// TestNothingIsWrittenIntoTheWorld: how late nodes are stands beside the world. Who begins to decide later, with the
// same world, knows nothing of it, and waits as long.
func TestNothingIsWrittenIntoTheWorld(t *testing.T) {
	x := newPatient("n1", "n2")
	x.w.SetNamespace(&world.Namespace{Name: "ns"})
	x.w.SetPod(&world.Pod{Namespace: "ns", Name: "a", Node: "n2", IPs: []netip.Addr{addr("10.244.1.5")}, Running: true})
	x.w.SetEgressIP(object("late", 0, "172.18.0.44"))
	hold(x.w, "n1", map[string][]netip.Addr{"e": {addr("172.18.0.33")}})
	d := x.after(40 * time.Second)
	if !tooLate(x.p, "n2") || conditionOf(d, "Ready").Status != "True" {
		t.Fatalf("too late: %v, Ready: %+v", x.p.TooLate(), conditionOf(d, "Ready"))
	}
	x.p = egressip.NewPatience()
	if d := x.after(time.Second); tooLate(x.p, "n2") || conditionOf(d, "Ready").Status != "False" {
		t.Errorf("too late: %v, Ready: %+v", x.p.TooLate(), conditionOf(d, "Ready"))
	}
}
