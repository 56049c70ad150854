package egressip_test

import (
	"fmt"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile/compiletest"
	deciding "github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/world"
)

// term is a controller's: a world, and what decides about its EgressIPs.
type term struct {
	w        *world.World
	assigner *egressip.Assigner
	overlaps *egressip.Overlapper
	traffic  *egressip.Selector
	marker   *egressip.Marker
	links    *egressip.LinkChecker
	forgets  bool // it decides about everything, every time
}

func newTerm(forgets bool) *term {
	w := world.New("", compiletest.Config(world.SharedGateway))
	for i := 1; i <= 3; i++ {
		w.SetNode(compiletest.Node(i))
	}
	return termOf(w, forgets)
}

func termOf(w *world.World, forgets bool) *term {
	pods := handover.NewPods()
	x := &term{w, egressip.NewAssigner(pods), egressip.NewOverlapper(pods), egressip.NewSelector(),
		egressip.NewMarker(), egressip.NewLinkChecker(pods), forgets}
	for _, d := range x.deciders() {
		w.FollowChanges(d.NoteChanged)
	}
	return x
}

func (x *term) deciders() []deciding.Decider {
	return []deciding.Decider{x.assigner, x.overlaps, x.traffic, x.marker, x.links}
}

// change makes one, and says when its deciders ask for a decision because of what the API has shown.
func (x *term) change(change func(*world.World), now time.Time) (again []time.Time) {
	change(x.w)
	for t := range x.w.ShownAnew() {
		for _, d := range x.deciders() {
			again = append(again, d.Seen(deciding.View{World: x.w, Now: now}, t))
		}
	}
	return again
}

// round is one decision about everything, in the place of what the API shows. It returns what is told of it, by
// EgressIP, and when it is to be made again.
func (x *term) round(now time.Time) (told map[string][]deciding.Event, again []time.Time) {
	if x.forgets {
		x.assigner.Forget()
		x.overlaps.Forget()
		x.traffic.Forget()
		x.marker.Forget()
		x.links.Forget()
	}
	told = map[string][]deciding.Event{}
	free := x.w.Pass(now)
	for _, d := range x.deciders() {
		desired, next := d.Decide(deciding.View{World: x.w, Now: now})
		again = append(again, next)
		for _, one := range desired {
			x.w.Decide(one.Kind, one.Key, one.Decision)
			if len(one.Events) > 0 {
				told[one.Key] = append(told[one.Key], one.Events...)
			}
		}
	}
	return told, append(again, free)
}

// TestDecidesAsFromNothing: over any history, to decide about what has changed alone says what it says to decide about
// everything: the same status, the same Events, and the same time to be asked again.
func TestDecidesAsFromNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, some, now := newTerm(true), newTerm(false), time.Unix(100_000, 0)
		for range rapid.IntRange(5, 40).Draw(t, "steps") {
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				change := drawChange(t, all.w)
				if a, b := all.change(change, now), some.change(change, now); !reflect.DeepEqual(a, b) {
					t.Fatalf("what is shown calls for a decision at %v, not at %v", b, a)
				}
			}
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 1, 1000, 2000, 5000, 31_000, 300_000,
				-5000}).Draw(t, "ms")) * time.Millisecond)
			a, when := all.round(now)
			b, then := some.round(now)
			if !reflect.DeepEqual(a, b) {
				t.Fatalf("told of\n%+v, want\n%+v", b, a)
			}
			if !reflect.DeepEqual(when, then) {
				t.Fatalf("again at %v, want %v", then, when)
			}
			sameEgressIPs(t, all, some)
		}
	})
}

func sameEgressIPs(t *rapid.T, all, some *term) {
	for e := range world.Each[world.EgressIP](&all.w.View, world.KindEgressIP) {
		x := some.w.EgressIP(e.Name)
		if !reflect.DeepEqual(e.Items, x.Items) || !e.Placement.Same(&x.Placement) ||
			e.InForce != x.InForce || e.Mark != x.Mark || !world.SameConditions(e.Conditions, x.Conditions) {
			t.Fatalf("%s is\n%+v, want\n%+v", e.Name, x, e)
		}
		a, b := all.assigner.Last()[e.Name], some.assigner.Last()[e.Name]
		if !reflect.DeepEqual(a.Notices, b.Notices) || !reflect.DeepEqual(a.Awaited, b.Awaited) ||
			!reflect.DeepEqual(a.WaitsFor, b.WaitsFor) {
			t.Fatalf("%s was decided as\n%+v, want\n%+v", e.Name, b, a)
		}
	}
	if a, b := len(all.assigner.Last()), len(some.assigner.Last()); a != b {
		t.Fatalf("%d decisions are kept, want %d", b, a)
	}
}

// drawChange is what the API shows, what is probed, or what an agent reports that does as it is told.
func drawChange(t *rapid.T, w *world.World) func(*world.World) {
	i, node := rapid.IntRange(0, 3).Draw(t, "which"), fmt.Sprint("n", rapid.IntRange(1, 3).Draw(t, "of"))
	switch rapid.IntRange(0, 18).Draw(t, "kind of change") {
	case 0, 1, 2:
		return compiletest.Draw(t, w)
	case 3:
		why := rapid.SampledFrom([]world.Unreachability{"", world.NodeUnreachable, world.AgentAway}).Draw(t, "why")
		return func(w *world.World) { w.SetUnreachable(node, why) }
	case 4, 5:
		p := compiletest.Pod(i, node)
		p.Running = true
		return func(w *world.World) { w.SetPod(p) }
	case 6:
		e := contender(t, i)
		return func(w *world.World) { w.SetEgressIP(e) }
	case 7, 8, 9:
		return obedience(t, node)
	case 10:
		n := compiletest.Recorded(1 + i%3)
		n.Labels["zone"] = drawZone(t)
		return func(w *world.World) { w.SetNode(n) }
	case 11:
		s := &world.Service{Namespace: "default", Name: fmt.Sprint("s", i), ClusterIPs: []netip.Addr{
			compiletest.V4(10, 96, 0, 1)}, ExternalIPs: compiletest.EgressAddr(i % 2)}
		return func(w *world.World) { w.SetService(s) }
	case 12:
		return func(w *world.World) { w.DelService(fmt.Sprint("default/s", i)) }
	case 13, 14:
		return compiletest.DrawTraffic(t)
	case 15:
		not := rapid.Bool().Draw(t, "not answering")
		return func(w *world.World) { w.SetNotAnswering(node, not) }
	case 16:
		return ofAll(func(w *world.World, node string) { w.SetUnreachable(node, world.AgentAway) })
	}
	only := rapid.SampledFrom([]string{"", "e0", "e1", "e2", "e3"}).Draw(t, "shown")
	return func(w *world.World) { show(w, only) }
}

// ofAll is the same of each node.
func ofAll(set func(w *world.World, node string)) func(*world.World) {
	return func(w *world.World) {
		for i := 1; i <= 3; i++ {
			set(w, fmt.Sprint("n", i))
		}
	}
}

// show has the API show EgressIPs as they were decided.
func show(w *world.World, only string) {
	for _, name := range []string{"e0", "e1", "e2", "e3"} {
		_, should := world.Undone[world.EgressIP](w, world.KindEgressIP, name)
		if should != nil && (only == "" || only == name) {
			w.SetEgressIP(should)
		}
	}
}

// contender is an EgressIP that asks for what may be another's, a pod's or a Service's, and may be another object than
// the one of its name before.
func contender(t *rapid.T, i int) *world.EgressIP {
	ips := []netip.Addr{compiletest.EgressAddr(i % 2)[0], compiletest.PodIPs(0, 1)[0], compiletest.V4(10, 96, 0, 1),
		compiletest.Primary(3), compiletest.EgressAddr(i)[1], compiletest.SecondaryAddr(0)[0],
		compiletest.V4(172, 18, 0, 250)}
	e := compiletest.EgressIP(i, "", ips[:rapid.IntRange(1, len(ips)).Draw(t, "asks for")]...)
	e.Generation = int64(rapid.IntRange(1, 2).Draw(t, "generation"))
	e.UID = fmt.Sprint(e.UID, rapid.SampledFrom([]string{"", "", "again"}).Draw(t, "object"))
	e.DropWhenUnassigned = rapid.Bool().Draw(t, "drops")
	e.Nodes = drawSelector(t)
	if to := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "traffic"); to != "" {
		e.Traffic = compiletest.TrafficSelector(to)
	}
	if rapid.IntRange(0, 4).Draw(t, "has a problem") == 0 {
		e.SelectorProblem = "it cannot be read"
	}
	return e
}

// obedience is a report of a node that does what the statuses say, and may have something to say about it.
func obedience(t *rapid.T, node string) func(*world.World) {
	h := world.Holding{Node: node, BootID: "boot-" + node, SteersMore: rapid.IntRange(0, 4).Draw(t, "full") == 0,
		Problems: map[string]string{}, Faults: map[netip.Prefix]string{}}
	about := rapid.SampledFrom([]string{"", "e0", "e1"}).Draw(t, "about")
	switch rapid.IntRange(0, 5).Draw(t, "says") {
	case 0:
		h.Problems[about] = "nb refused it"
	case 1:
		h.Faults[netip.PrefixFrom(compiletest.SecondaryAddr(0)[0], 24).Masked()] = "down"
	}
	older := rapid.IntRange(0, 3).Draw(t, "an agent of before") == 0
	stray := rapid.IntRange(0, 4).Draw(t, "holds for a former object") == 0
	return func(w *world.World) {
		h := h
		h.HeldSince, h.SteersSince = nil, nil
		h.Holds, h.Steers = map[string][]netip.Addr{}, map[string][]world.Assignment{}
		for _, name := range w.EgressIPs() {
			e := w.EgressIP(name)
			h.Steers[name] = e.Items
			for _, i := range e.Items {
				h.SaySteers(name, i, e.Since(i))
			}
			for _, ip := range e.IPs {
				if e.Names(node, ip) {
					h.Holds[name] = append(h.Holds[name], ip)
					h.SayHeld(name, ip, e.Since(world.Assignment{Node: node, IP: ip}))
				}
			}
		}
		if older {
			h.HeldSince, h.SteersSince = nil, nil
		}
		if stray {
			h.Holds["shop/former"] = compiletest.EgressAddr(0)
		}
		w.SetHolding(&h)
	}
}
