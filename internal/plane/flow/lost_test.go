package flow

import (
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/planetest"
)

// TestLostFlowsAreNoticed: what others delete is written again, and flows that end by themselves, or were taken out of
// the plan, are no loss.
func TestLostFlowsAreNoticed(t *testing.T) {
	m := newMemory()
	p := newPlane(m, fixedPorts{"eth0": 1, "patch-br0-default": 2}, slog.New(slog.DiscardHandler))
	want := stateA()
	want.Flows.Put(planetest.Owner("lease"),
		plan.Flow{Bridge: "br0", Priority: 119, Match: "arp,hard_timeout=20"}, "NORMAL")
	apply := func(s *plan.State) string {
		if err := plane.Apply(t.Context(), []plane.Plane{p}, s); err != nil {
			t.Fatal(err)
		}
		return m.text(true)
	}
	look := func(expected bool, when string) {
		if lost := p.hasLostFlows(t.Context()); lost != expected {
			t.Errorf("%s: lost %t, of %s", when, lost, m.text(true))
		}
	}
	look(false, "before anything was written")
	apply(want)
	look(false, "all are there")
	maps.DeleteFunc(m.flows["br0"], func(match string, _ entry) bool { return strings.Contains(match, "priority=119") })
	look(false, "a lease has ended")
	all := apply(stateB())
	look(false, "another plan")
	clear(m.flows["br0"])
	look(true, "all are deleted")
	if again := apply(stateB()); again != all {
		t.Errorf("have %s, want %s", again, all)
	}
	look(false, "all are there again")
}

// TestWatchTells: of what was lost by the time at which it counts.
func TestWatchTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		p := newPlane(m, fixedPorts{"eth0": 1, "patch-br0-default": 2}, slog.New(slog.DiscardHandler))
		if err := plane.Apply(t.Context(), []plane.Plane{p}, stateA()); err != nil {
			t.Fatal(err)
		}
		clear(m.flows["br0"])
		begin := time.Now()
		select {
		case <-p.Watch(t.Context()):
		case <-time.After(time.Hour):
		}
		if d := time.Since(begin); d != countEvery {
			t.Errorf("told after %s", d)
		}
	})
}

// TestLostInASwitch: flows of another cookie take the place of none.
func TestLostInASwitch(t *testing.T) {
	s, _ := start(t)
	p := planeOn(t, s)
	must := func(st *plan.State) {
		if err := plane.Apply(t.Context(), []plane.Plane{p}, st); err != nil {
			t.Fatal(err)
		}
	}
	must(stateA())
	s.Ofctl("add-flow", s.Mgmt("br0"), "cookie=0x5,priority=100,ip,nw_src=10.0.0.1,actions=drop")
	if p.hasLostFlows(t.Context()) {
		t.Errorf("lost some of\n%s", dump(s, true))
	}
	s.Ofctl("--strict", "del-flows", s.Mgmt("br0"), "priority=100,arp")
	if !p.hasLostFlows(t.Context()) {
		t.Errorf("lost none of\n%s", dump(s, true))
	}
	must(stateA())
	if p.hasLostFlows(t.Context()) || !strings.Contains(dump(s, true), "arp") {
		t.Errorf("not written again:\n%s", dump(s, true))
	}
}
