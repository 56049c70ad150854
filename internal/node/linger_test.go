package node

import (
	"log/slog"
	"net/netip"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// TestYieldedAddressLingers: an address that this node gives way for is translated here a while longer, unannounced and muted. Its end is not taken for
// another one's begin.
func TestYieldedAddressLingers(t *testing.T) {
	ip, w := compiletest.EgressAddr(0)[0], holding("n1", "n1")
	a := newAgent("n1", w.Config, slog.New(slog.DiscardHandler))
	full := func() *plan.State { return compile.Full(w, all.Features()) }
	a.settle(w, full())
	w.SetYielded(world.EgressAddress{EgressIP: "e0", IP: ip}, "n2")
	if len(translates(full())) != 0 || len(a.settle(w, full())) == 0 || len(translates(full())) != 1 {
		t.Fatalf("the plan translates to %v, want the address that was given way for", translates(full()))
	}
	if n := len(full().Announcements); n != 0 {
		t.Errorf("%d announcements of an address that another node announces", n)
	}
	if _, muted := full().Flows.Get(plan.Flow{Bridge: "breth0", Priority: 120, Match: "arp,in_port={eth0},arp_tpa=" + ip.String()}); !muted {
		t.Error("ARP for it is answered")
	}
	a.settle(w, full())
	w.SetLingering("e0", ip, false)
	if touched := a.settle(w, full()); len(touched) != 0 || len(translates(full())) != 0 {
		t.Errorf("it lingers again: %v", touched)
	}
}

// TestNothingLingersWithoutYielding: what the status takes away is let go of at once, by an agent that goes on and by one that starts then, with or without
// anybody who could take over. Only status.leaving keeps it.
func TestNothingLingersWithoutYielding(t *testing.T) {
	for _, to := range []string{"n2", ""} {
		for _, started := range []bool{true, false} {
			w := holding("n1", "n1")
			a := newAgent("n1", w.Config, slog.New(slog.DiscardHandler))
			full := func() *plan.State { return compile.Full(w, all.Features()) }
			if started {
				a.settle(w, full())
			}
			w.SetEgressIP(e0(to))
			if touched := a.settle(w, full()); len(touched) != 0 || len(translates(full())) != 0 {
				t.Errorf("moved to %q, agent started before: %v: touched %v, translates to %v", to, started, touched, translates(full()))
			}
		}
	}
}

// TestNothingLingersAfterLeaving: a former holder that has heard its successor announce the address has given way for it, too. It lets go all the same when the
// status no longer lists it.
func TestNothingLingersAfterLeaving(t *testing.T) {
	ip, w := compiletest.EgressAddr(0)[0], holding("n1", "n1")
	a := newAgent("n1", w.Config, slog.New(slog.DiscardHandler))
	full := func() *plan.State { return compile.Full(w, all.Features()) }
	a.settle(w, full())
	leaving := e0("n2")
	leaving.Leaving = []world.Leaving{{Node: "n1", IP: ip}}
	w.SetEgressIP(leaving)
	w.SetYielded(world.EgressAddress{EgressIP: "e0", IP: ip}, "n2")
	if touched := a.settle(w, full()); len(touched) != 0 || len(translates(full())) != 1 {
		t.Fatalf("leaving: touched %v, translates to %v", touched, translates(full()))
	}
	w.SetEgressIP(e0("n2"))
	if touched := a.settle(w, full()); len(touched) != 0 || len(translates(full())) != 0 {
		t.Errorf("not leaving any more: touched %v, translates to %v", touched, translates(full()))
	}
}

// holding is the world of a node in which EgressIP e0 is assigned to n1 and held by others.
func holding(self string, by ...string) *world.World {
	w := compiletest.Small(self, world.SharedGateway)
	w.SetEgressIP(e0("n1"))
	for _, n := range by {
		w.SetHolding(&world.Holding{Node: n, BootID: "boot-" + n, Holds: map[string][]netip.Addr{"e0": {compiletest.EgressAddr(0)[0]}}})
	}
	return w
}

// e0 is an EgressIP that is in force, and assigned to a node, "" is none.
func e0(to string) *world.EgressIP {
	ip := compiletest.EgressAddr(0)[0]
	e := compiletest.EgressIP(0, "", ip)
	e.InForce[world.V4] = true
	if to != "" {
		e.Items = []world.Assignment{{Node: to, IP: ip}}
	}
	return e
}
