package egressip_test

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// TestOnePodMore: where an EgressIP has a pod already, one pod more is an element of two sets on its own node and of
// one on the holder, and no row. An EgressIP of some destinations has a set more, whose pods are filtered as to those
// alone.
func TestOnePodMore(t *testing.T) {
	for name, x := range map[string]struct {
		node    string
		traffic *world.Traffic
		want    []string
	}{
		"pod's node": {"n1", nil, []string{"egressip-guarded-pods", "egressip/e0/local"}},
		"holder":     {"n2", nil, []string{"egressip/e0/pods"}},
		"by destination, pod's node": {"n1", compiletest.Traffic(0, "web", "203.0.113.0/24", "fd00:20::/64"),
			[]string{"egressip-partly-served-pods", "egressip/e0/guarded", "egressip/e0/local"}},
		"by destination, holder": {"n2", compiletest.Traffic(0, "web", "203.0.113.0/24", "fd00:20::/64"),
			[]string{"egressip/e0/pods"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := heldOnN2(x.node, x.traffic)
			w.SetPod(compiletest.Pod(0, "n1"))
			before := compile.Full(w, all.Features())
			w.SetPod(compiletest.Pod(4, "n1"))
			after := compile.Full(w, all.Features())
			if d := plan.Diff(compiletest.Rows(before.NB), after.NB, plan.EqualRows); len(d.Put)+len(d.Del) > 0 {
				t.Errorf("rows change: %v", d)
			}
			var want []string
			for _, set := range x.want {
				want = append(want, set+".v4", set+".v6")
			}
			changed := map[string]bool{}
			for e := range plan.Diff(compiletest.Rows(before.SetElems), after.SetElems, plan.Same).Put {
				changed[e.Set] = true
			}
			if have := slices.Sorted(maps.Keys(changed)); !slices.Equal(have, want) {
				t.Errorf("sets %v change, want %v", have, want)
			}
		})
	}
}

// heldOnN2 is a node's world with an EgressIP for all pods of app web, which n2 holds.
func heldOnN2(self string, traffic *world.Traffic) *world.World {
	w := compiletest.Small(self, world.SharedGateway)
	for _, ns := range []string{"ns0", "ns1", "ns2"} {
		w.SetNamespace(&world.Namespace{Name: ns})
	}
	e := compiletest.EgressIP(0, "app=web", compiletest.EgressAddr(0)...)
	if traffic != nil {
		e.Traffic = compiletest.TrafficSelector("web")
		w.SetTraffic(traffic)
	}
	for _, ip := range e.IPs {
		e.Items = append(e.Items, world.Assignment{Node: "n2", IP: ip})
	}
	e.InForce = [2]bool{true, true}
	w.SetEgressIP(e)
	holds := &world.Holding{Node: "n2", BootID: "boot-n2", Holds: map[string][]netip.Addr{"e0": e.IPs}}
	w.SetHolding(holds)
	return w
}
