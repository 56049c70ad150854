package controller

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/networks"
	"github.com/egret-net/egret/internal/world"
)

// nowhere takes every write, and shows nothing of it.
type nowhere struct{}

func (nowhere) Patch(context.Context, kube.Patch) (string, error) { return "", nil }
func (nowhere) PostEvent(context.Context, kube.Posting) error     { return nil }
func (nowhere) Changes() <-chan kube.Change                       { return nil }
func (nowhere) Synced() bool                                      { return true }
func (nowhere) WentBack() int64                                   { return 0 }
func (nowhere) LookAtWatches(now time.Time) time.Time             { return now.Add(time.Minute) }
func (nowhere) ReadNow(context.Context, kube.Kind, string) error  { return nil }

// big is a controller of many nodes, and EgressIPs of ten pods each, all of which are held and steered to. Its rounds
// are made by hand.
type big struct {
	*Controller
	now time.Time
}

// size counts the objects of a cluster.
type size struct{ nodes, egressNodes, egressIPs int }

func newBig(ctx context.Context, of size) *big {
	config := compiletest.Config(world.SharedGateway)
	config.ClusterSubnets[0].CIDR = netip.MustParsePrefix("10.0.0.0/8")
	x := &big{New(config, all.ServedKinds(), nowhere{}, nowhere{}, NewMetrics(), slog.New(slog.DiscardHandler)),
		time.Unix(100_000, 0)}
	x.beginTerm(ctx)
	for i := 1; i <= of.nodes; i++ {
		x.applyChange(func(w *world.World) { w.SetNode(bigNode(i, of.egressNodes)) })
	}
	reports := map[string]*world.Holding{}
	for i := range of.egressIPs {
		x.fill(i, of, reports)
	}
	for _, h := range reports {
		x.applyChange(func(w *world.World) { w.SetHolding(h) })
	}
	for range 3 { // allocations; records; what follows from them
		x.round(func(*world.World) {})
		x.show()
	}
	return x
}

// bigNode has all that an agent publishes; every fifth is an egress node, until there are so many.
func bigNode(i, egressNodes int) *world.Node {
	n := compiletest.BigNode(i)
	n.UplinkMAC = compiletest.HardwareAddr(fmt.Sprintf("02:00:00:00:%02x:%02x", i>>8, i&255))
	n.HostAddrs, n.CIDRs = n.HostAddrs[:1], n.Primary
	if i%5 != 0 || i > 5*egressNodes {
		n.Labels = nil
	}
	return n
}

// bigEgressIP is on one of the egress nodes.
func bigEgressIP(i, egressNodes int) *world.EgressIP {
	e := compiletest.BigEgressIP(i)
	e.Items[0].Node = fmt.Sprint("n", i%egressNodes*5+5)
	return e
}

func bigPod(i int) *world.Pod {
	p := compiletest.BigPod(i)
	p.Running = true
	return p
}

// fill adds the i-th EgressIP with its namespace and ten pods, and what nodes report of it.
func (x *big) fill(i int, of size, reports map[string]*world.Holding) {
	e := bigEgressIP(i, of.egressNodes)
	ns := &world.Namespace{Name: fmt.Sprint("ns", i), Labels: map[string]string{"team": fmt.Sprint(i)}}
	x.applyChange(func(w *world.World) {
		w.SetNamespace(ns)
		w.SetEgressIP(e)
	})
	report := func(node string) *world.Holding {
		if reports[node] == nil {
			reports[node] = &world.Holding{Node: node, BootID: "boot", Holds: map[string][]netip.Addr{},
				Steers: map[string][]world.Assignment{}}
		}
		return reports[node]
	}
	report(e.Items[0].Node).Holds[e.Name] = e.IPs
	for j := range 10 {
		p := bigPod(10*i + j)
		x.applyChange(func(w *world.World) { w.SetPod(p) })
		report(p.Node).Steers[e.Name] = e.Items
	}
}

// round makes a change, and decides.
func (x *big) round(change kube.Change) {
	x.applyChange(change)
	x.now = x.now.Add(time.Second)
	x.decideAll(x.now)
}

// show ends all writes, and has the API show everything as it was decided.
func (x *big) show() {
	for x.outbox.writing > 0 {
		x.takeResult(<-x.results)
	}
	for _, name := range x.world.Nodes() {
		if _, n := world.Undone[world.Node](x.world, world.KindNode, name); n != nil {
			x.applyChange(func(w *world.World) { w.SetNode(n) })
		}
	}
	for _, name := range x.world.EgressIPs() {
		if _, e := world.Undone[world.EgressIP](x.world, world.KindEgressIP, name); e != nil {
			x.applyChange(func(w *world.World) { w.SetEgressIP(e) })
		}
	}
	x.events.told = nil
}

// bigChange is what changes between two decisions: lap by lap it is another value. A round makes at most so many
// allocations, which are half as many again as when this was written.
type bigChange struct {
	name        string
	allocations uint64
	make        func(w *world.World, lap int)
}

func bigChanges() []bigChange {
	return []bigChange{
		{"nothing", 40, func(*world.World, int) {}},
		{"one EgressIP", 750, func(w *world.World, lap int) {
			e := *w.ShownEgressIP("e500")
			e.Generation++
			e.IPs = []netip.Addr{compiletest.V4(172, 18, 200, lap%2)}
			w.SetEgressIP(&e)
		}},
		{"one pod", 100, func(w *world.World, lap int) {
			p := bigPod(5000)
			p.Name, p.Node, p.IPs = "new", "n1", []netip.Addr{compiletest.V4(10, 0, 1, 100+lap%100)}
			w.SetPod(p)
		}},
		{"a probe of a node", 3500, func(w *world.World, lap int) {
			w.SetUnreachable("n3", []world.Unreachability{world.AgentAway, ""}[lap%2])
		}},
		{"a probe of an egress node", 3600, func(w *world.World, lap int) {
			w.SetUnreachable("n5", []world.Unreachability{world.NodeUnreachable, ""}[lap%2])
		}},
		{"a tenant's Services", 95, func(w *world.World, lap int) {
			for i := range 2000 {
				if lap == 0 || i == 0 {
					w.SetService(bigService(i, lap))
				}
			}
		}},
	}
}

// bigService is one of a tenant's, with another external IP in each lap.
func bigService(i, lap int) *world.Service {
	return &world.Service{Namespace: "tenant", Name: fmt.Sprint("s", i), UID: fmt.Sprint("s", i),
		ClusterIPs:  []netip.Addr{compiletest.V4(10, 96, i>>8, i&255)},
		ExternalIPs: []netip.Addr{compiletest.V4(192, 0, 2, lap&255)}}
}

// change is one lap's.
func (c bigChange) change(lap int) kube.Change {
	return func(w *world.World) { c.make(w, lap) }
}

// BenchmarkDecision is one decision round after one change; an egress node whose probe fails hosts ten addresses.
func BenchmarkDecision(b *testing.B) {
	for _, c := range bigChanges() {
		b.Run(c.name, func(b *testing.B) {
			x := newBig(b.Context(), size{500, 100, 1000})
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

// cost returns the allocations of the cheapest of some rounds after a change, and their bytes.
func (x *big) cost(c bigChange) (allocations, bytes uint64) {
	allocations, bytes = math.MaxUint64, math.MaxUint64
	for lap := range 6 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		x.round(c.change(lap))
		runtime.ReadMemStats(&after)
		allocations = min(allocations, after.Mallocs-before.Mallocs)
		bytes = min(bytes, after.TotalAlloc-before.TotalAlloc)
		x.show()
	}
	return allocations, bytes
}

// TestBudget: a decision round allocates in proportion to what has changed. A look at each EgressIP that makes a string
// of it would be 1,000 more.
func TestBudget(t *testing.T) {
	x := newBig(t.Context(), size{500, 100, 1000})
	for _, c := range bigChanges() {
		least, _ := x.cost(c)
		t.Logf("%s: %d allocations", c.name, least)
		if least > c.allocations {
			t.Errorf("a round after a change of %s makes %d allocations; its budget is %d", c.name, least,
				c.allocations)
		}
	}
}

// newcomer is a controller that sees an EgressIP come, and go again, beside so many pods that it does not select.
func newcomer(ctx context.Context, others int) (live func()) {
	c := compiletest.NewNewcomer("", others)
	x := &big{New(c.World.Config, all.ServedKinds(), nowhere{}, nowhere{}, NewMetrics(), slog.New(slog.DiscardHandler)),
		time.Unix(100_000, 0)}
	networks.KeepTables(c.World)
	x.world = c.World
	x.world.FollowChanges(x.noteChanged)
	x.beginTerm(ctx)
	for range 3 {
		x.round(func(*world.World) {})
		x.show()
	}
	return func() {
		for _, happen := range c.Life() {
			x.round(func(*world.World) { happen() })
			x.show()
		}
	}
}

// BenchmarkNewEgressIP is all decisions about an EgressIP of ten pods from its creation to its end.
func BenchmarkNewEgressIP(b *testing.B) {
	for _, others := range []int{10, 10_000} {
		b.Run(fmt.Sprint("beside ", others), func(b *testing.B) {
			live := newcomer(b.Context(), others)
			b.ReportAllocs()
			for b.Loop() {
				live()
			}
		})
	}
}

// TestBudgetOfNewEgressIP: an EgressIP costs the same however many pods there are that it does not select.
func TestBudgetOfNewEgressIP(t *testing.T) {
	var least [2]uint64
	for i, others := range []int{10, 10_000} {
		live := newcomer(t.Context(), others)
		least[i] = math.MaxUint64
		for range 6 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			live()
			runtime.ReadMemStats(&after)
			least[i] = min(least[i], after.Mallocs-before.Mallocs)
		}
	}
	t.Logf("%d allocations beside 10 pods, %d beside 10,000", least[0], least[1])
	if least[1]*5 > least[0]*6 {
		t.Errorf("%d allocations beside 10,000 pods, and %d beside 10: more than 1.2 times as many", least[1], least[0])
	}
}
