package egressip_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/world"
)

// obey has nodes report that they do what EgressIP e says now, and since when they are to.
func obey(w *world.World, names ...string) {
	e := w.EgressIP("e")
	for _, name := range names {
		h := &world.Holding{Node: name, BootID: "boot", Holds: map[string][]netip.Addr{},
			Steers: map[string][]world.Assignment{"e": e.Items}}
		for _, i := range e.Items {
			h.SaySteers("e", i, e.Since(i))
		}
		for _, ip := range e.IPs {
			if e.Names(name, ip) {
				h.Holds["e"] = append(h.Holds["e"], ip)
				h.SayHeld("e", ip, e.Since(world.Assignment{Node: name, IP: ip}))
			}
		}
		w.SetHolding(h)
	}
}

func labelled(w *world.World, name string) {
	n := *w.Node(name)
	n.Labels = map[string]string{world.AssignableLabel: ""}
	w.SetNode(&n)
}

func asking(w *world.World, ips ...string) {
	e := *w.EgressIP("e")
	e.IPs = object("", 0, ips...).IPs
	w.SetEgressIP(&e)
}

// withPod has a pod of EgressIP e run on n3.
func withPod(nodes ...string) *patient {
	x := newPatient(nodes...)
	x.w.SetNamespace(&world.Namespace{Name: "ns"})
	x.w.SetPod(&world.Pod{Namespace: "ns", Name: "a", Node: "n3", IPs: []netip.Addr{addr("10.244.1.5")}, Running: true})
	return x
}

func saysOf(d egressip.Decision) string {
	return "Ready " + conditionOf(d, "Ready").Status + ", InForce " + conditionOf(d, "InForce").Status
}

// TestGivenBackIsWaitedFor: an EgressIP that loses its address and gets it back on the same node is Ready and in force
// by what nodes report of this giving, not by what they still report of the former one: they are about to see that it
// was lost. An agent of before does not tell these apart.
func TestGivenBackIsWaitedFor(t *testing.T) {
	for name, x := range map[string]struct{ loses, regains func(*world.World) }{
		"its node leaves": {func(w *world.World) { unlabel(w, "n1") }, func(w *world.World) { labelled(w, "n1") }},
		"its spec drops it": {func(w *world.World) { asking(w, "10.0.0.1") },
			func(w *world.World) { asking(w, "172.18.0.33") }},
	} {
		for _, older := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				y := withPod("n1", "n3")
				unlabel(y.w, "n3")
				y.after(0)
				obey(y.w, "n1", "n3")
				if older {
					report(y.w, "n1", "172.18.0.33")
					report(y.w, "n3", "", y.w.EgressIP("e").Items...)
				}
				if d := y.after(0); saysOf(d) != "Ready True, InForce True" {
					t.Fatalf("at first: %s", saysOf(d))
				}
				x.loses(y.w)
				if d := y.after(time.Millisecond); items(d) != "" || saysOf(d) != "Ready False, InForce False" {
					t.Fatalf("without a node: %s, %s", items(d), saysOf(d))
				}
				x.regains(y.w)
				for range 2 { // when it is given, and when that is written
					d := y.after(time.Millisecond)
					if is := saysOf(d) == "Ready True, InForce True"; items(d) != "n1=172.18.0.33" || is != older ||
						d.InForce[world.V4] != older {
						t.Errorf("by former reports: %s, %s, %v", items(d), saysOf(d), d.InForce)
					}
				}
				obey(y.w, "n1")
				if d := y.after(0); saysOf(d) != "Ready False, InForce False" != older || !d.InForce[world.V4] {
					t.Errorf("by the holder's report: %s, %v", saysOf(d), d.InForce)
				}
				obey(y.w, "n3")
				if d := y.after(0); saysOf(d) != "Ready True, InForce True" {
					t.Errorf("by all reports: %s", saysOf(d))
				}
			})
		}
	}
}

// TestMoveKeepsOthersAsGiven: of a planned move nothing is said anew of the address that stays, InForce stays True, and
// the former holder has the address as it had it if it gets it back while it is leaving.
func TestMoveKeepsOthersAsGiven(t *testing.T) {
	x := withPod("n1", "n2", "n3", "n4")
	asking(x.w, "172.18.0.33", "172.18.0.44")
	x.after(0)
	unlabel(x.w, "n3")
	obey(x.w, "n1", "n2", "n3", "n4")
	d := x.after(time.Second)
	first := d.Given
	if items(d) != "n1=172.18.0.33 n2=172.18.0.44" || saysOf(d) != "Ready True, InForce True" || len(first) != 2 {
		t.Fatalf("at first: %s, %s, given %v", items(d), saysOf(d), first)
	}
	step := func(name, want string, now ...func()) {
		t.Helper()
		for _, f := range now {
			f()
		}
		d = x.after(time.Second)
		if have := items(d) + " " + saysOf(d); have != want || d.Since(first[1].Assignment) != first[1].Since {
			t.Errorf("%s: %s, want %s; given %v, at first %v", name, have, want, d.Given, first)
		}
	}
	const moved = "n4=172.18.0.33 n2=172.18.0.44 Ready False, InForce True"
	step("moved", moved, func() { unlabel(x.w, "n1") })
	step("given back", "n1=172.18.0.33 n2=172.18.0.44 Ready True, InForce True",
		func() { labelled(x.w, "n1"); unlabel(x.w, "n4") })
	if d.Given[0] != first[0] {
		t.Errorf("the former holder has been given it anew: %v, at first %v", d.Given, first)
	}
	step("moved again", moved, func() { labelled(x.w, "n4"); unlabel(x.w, "n1") })
	if d.Given[0].Since <= first[0].Since {
		t.Errorf("the successor has been given it %s, its predecessor %s", d.Given[0].Since, first[0].Since)
	}
	step("the successor holds it", moved, func() { obey(x.w, "n4") })
	const there = "n4=172.18.0.33 n2=172.18.0.44 Ready True, InForce True"
	step("pods are led there", there, func() { obey(x.w, "n1", "n2", "n3") })
	x.last = nil // another leader, whose clock is behind
	x.now = x.now.Add(-time.Hour)
	given := d.Given
	step("another leader", there)
	if d.Given[0] != given[0] {
		t.Errorf("another leader gives it anew: %v, before %v", d.Given, given)
	}
	step("moved on", "n1=172.18.0.33 n2=172.18.0.44 Ready False, InForce True",
		func() { labelled(x.w, "n1"); unlabel(x.w, "n4") })
	if d.Given[0].Since <= given[0].Since {
		t.Errorf("given at %s, after %s", d.Given[0].Since, given[0].Since)
	}
}

// TestOfControllerOfBefore: of what its status gives nobody says since when, and nobody comes to say it: all reports
// count.
func TestOfControllerOfBefore(t *testing.T) {
	x := withPod("n1", "n3")
	e := *x.w.EgressIP("e")
	e.Items = []world.Assignment{{Node: "n1", IP: e.IPs[0]}}
	x.w.SetEgressIP(&e)
	x.after(0)
	report(x.w, "n1", "172.18.0.33")
	report(x.w, "n3", "", e.Items...)
	if d := x.after(time.Second); saysOf(d) != "Ready True, InForce True" || len(d.Given) > 0 {
		t.Errorf("%s, given %v", saysOf(d), d.Given)
	}
	h := *x.w.Holding("n1")
	h.SayHeld("e", e.IPs[0], 7)
	x.w.SetHolding(&h)
	if d := x.after(time.Second); saysOf(d) != "Ready True, InForce True" || len(d.Given) > 0 {
		t.Errorf("a report that says more: %s, given %v", saysOf(d), d.Given)
	}
}
