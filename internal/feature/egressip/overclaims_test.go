package egressip_test

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/world"
)

// step changes a world.
type step = func(*world.World)

// sameHistory makes steps, with decisions between, for one that remembers and for one that does not, and returns the
// world of the former. What they decide must be the same after each.
func sameHistory(t *testing.T, steps ...step) *world.World {
	t.Helper()
	all, some, now := newTerm(true), newTerm(false), time.Unix(100_000, 0)
	for i, change := range steps {
		for _, x := range []*term{all, some} {
			x.change(change, now)
			for range 3 {
				x.round(now)
				x.change(func(w *world.World) { show(w, "") }, now)
			}
		}
		now = now.Add(time.Second)
		for _, name := range all.w.EgressIPs() {
			want, have := all.w.EgressIP(name), some.w.EgressIP(name)
			if !reflect.DeepEqual(want.Items, have.Items) || want.InForce != have.InForce {
				t.Errorf("step %d, %s: at %v, in force %v; from nothing at %v, in force %v", i, name, have.Items,
					have.InForce, want.Items, want.InForce)
			}
		}
	}
	return some.w
}

// asksFor makes an EgressIP for its first address.
func asksFor(i int) step {
	return func(w *world.World) {
		w.SetEgressIP(compiletest.EgressIP(i, "", compiletest.EgressAddr(i)[0]))
	}
}

// saysHeld has n3 say that it holds e0's address for a former EgressIP, others for that, too, and one for EgressService
// ns0/s0.
func saysHeld(others int) step {
	ips := []netip.Addr{compiletest.EgressAddr(0)[0]}
	for i := range others {
		ips = append(ips, compiletest.V4(172, 18, 9, i))
	}
	return func(w *world.World) {
		w.SetHolding(&world.Holding{Node: "n3", BootID: "boot-n3", Holds: map[string][]netip.Addr{
			"former": ips, "ns0/s0": {compiletest.EgressAddr(9)[0]}}})
	}
}

// namedForOne has the status of EgressService ns0/s0 name n3 for that one.
func namedForOne(w *world.World) {
	s := compiletest.EgressService(0)
	s.Host, s.Items = "n3", []world.Assignment{{Node: "n3", IP: compiletest.EgressAddr(9)[0]}}
	w.SetEgressService(s)
}

// TestWordOfTooManyCountsNoMore: an address waits for a node's word as long as that is believed and no longer, where
// the node says more, and where a status names it for less than before.
func TestWordOfTooManyCountsNoMore(t *testing.T) {
	lessIsNamed := func(w *world.World) { w.DelEgressService("ns0/s0") }
	ways := map[string]step{"it says more": saysHeld(world.MostStanding), "less is named": lessIsNamed}
	for name, ends := range ways {
		t.Run(name, func(t *testing.T) {
			believed := []step{namedForOne, saysHeld(world.MostStanding - 1), asksFor(0)}
			if e := sameHistory(t, believed...).EgressIP("e0"); len(e.Items) != 0 {
				t.Fatalf("it is at %v while it waits", e.Items)
			}
			if e := sameHistory(t, append(believed, ends)...).EgressIP("e0"); len(e.Items) != 1 {
				t.Errorf("it waits for a word that does not count: %v", e.Conditions)
			}
		})
	}
}
