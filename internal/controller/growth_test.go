package controller

import (
	"fmt"
	"maps"
	"net/netip"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/world"
)

// newGrown returns a controller of a cluster with so many nodes, each with ten further pods, and 50 EgressIPs on ten
// egress nodes.
func newGrown(t testing.TB, nodes int) *big {
	x := newBig(t.Context(), size{nodes, 10, 50})
	for i := range 10 * nodes {
		x.applyChange(func(w *world.World) { w.SetPod(furtherPod(i, nodes)) })
	}
	x.round(func(*world.World) {})
	x.show()
	return x
}

// furtherPod is one that no EgressIP selects.
func furtherPod(i, nodes int) *world.Pod {
	node := i%nodes + 1
	return &world.Pod{Namespace: "further", Name: fmt.Sprint("f", i), UID: fmt.Sprint("f", i),
		Node: fmt.Sprint("n", node), Running: true,
		IPs: []netip.Addr{compiletest.V4(10, node>>8, node&255, 100+i/nodes)}}
}

// localChanges are those that concern one node or one object, however large the cluster is. They have no budgets.
func localChanges() []bigChange {
	return []bigChange{
		{"a node's label", 0, func(w *world.World, lap int) {
			n := *w.Said("n7")
			n.Labels = map[string]string{"lap": fmt.Sprint(lap)}
			w.SetNode(&n)
		}},
		{"a node's heartbeat", 0, func(w *world.World, _ int) {
			n := *w.Said("n7")
			n.Labels = maps.Clone(n.Labels)
			w.SetNode(&n)
		}},
		{"an agent that dies", 0, func(w *world.World, lap int) {
			w.SetUnreachable("n7", []world.Unreachability{world.AgentAway, ""}[lap%2])
		}},
		{"a node's boot", 0, func(w *world.World, lap int) {
			n := *w.Said("n7")
			n.BootID = fmt.Sprint("boot", lap)
			w.SetNode(&n)
		}},
		{"a node that comes or goes", 0, func(w *world.World, lap int) {
			if lap%2 == 1 {
				w.DelNode("new")
				return
			}
			n := bigNode(3000, 0)
			n.Name, n.ID, n.Subnets, n.ChassisID = "new", 0, nil, "new"
			w.SetNode(n)
		}},
		{"a pod that starts", 0, func(w *world.World, lap int) {
			p := furtherPod(0, 500)
			p.Name, p.IPs = fmt.Sprint("new", lap), []netip.Addr{compiletest.V4(10, 0, 1, 200+lap%40)}
			w.SetPod(p)
		}},
		{"a selected pod that starts", 0, func(w *world.World, lap int) {
			p := bigPod(3)
			p.Name, p.UID = fmt.Sprint("new", lap), fmt.Sprint("new", lap)
			p.IPs = []netip.Addr{compiletest.V4(10, 0, 4, 200+lap%40)}
			w.SetPod(p)
		}},
		{"a new EgressIP", 0, func(w *world.World, lap int) {
			e := compiletest.EgressIP(900+lap, "", compiletest.V4(172, 18, 190, lap))
			e.Namespaces = bigEgressIP(900, 10).Namespaces
			w.SetEgressIP(e)
		}},
		{"a holder's report", 0, func(w *world.World, lap int) {
			h := *w.Holding("n5")
			h.Holds = maps.Clone(h.Holds)
			if lap%2 == 0 {
				delete(h.Holds, "e10")
			} else {
				h.Holds["e10"] = w.EgressIP("e10").IPs
			}
			w.SetHolding(&h)
		}},
	}
}

// TestBudgetInLargeClusters: a change that concerns one object costs the same in a cluster of any size. What grows with
// the nodes is four times as much in the large one; tables that grow now and then make a difference of up to 1.7.
func TestBudgetInLargeClusters(t *testing.T) {
	few, many := newGrown(t, 500), newGrown(t, 2000)
	for _, c := range localChanges() {
		a, aBytes := few.cost(c)
		b, bBytes := many.cost(c)
		t.Logf("%s: %d allocations of %d bytes at 500 nodes, %d of %d at 2,000", c.name, a, aBytes, b, bBytes)
		if b > 2*a || bBytes > 2*aBytes {
			t.Errorf("%s: %d allocations of %d bytes at 500 nodes, %d of %d at 2,000", c.name, a, aBytes, b, bBytes)
		}
	}
}

// BenchmarkLargeCluster is one decision round after a change that concerns one object.
func BenchmarkLargeCluster(b *testing.B) {
	for _, nodes := range []int{500, 2000} {
		x := newGrown(b, nodes)
		for _, c := range localChanges() {
			b.Run(fmt.Sprint(c.name, " of ", nodes), func(b *testing.B) {
				b.ReportAllocs()
				for lap := 0; b.Loop(); lap++ {
					x.round(c.change(lap))
					b.StopTimer()
					x.show()
					b.StartTimer()
				}
			})
		}
	}
}
