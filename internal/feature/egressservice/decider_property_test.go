package egressservice_test

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/feature/egressservice"
	"github.com/egret-net/egret/internal/world"
)

// term is a controller's: a world, and what decides about its EgressServices.
type term struct {
	w       *world.World
	decider *egressservice.Decider
	forgets bool // it decides about everything, every time
}

func newTerm(forgets bool) *term {
	w := world.New("", compiletest.Config(world.SharedGateway))
	for i := 1; i <= 3; i++ {
		w.SetNode(named(compiletest.Node(i)))
	}
	x := &term{w, egressservice.NewDecider(handover.NewPods()), forgets}
	w.FollowChanges(func(e world.Entry) { x.decider.NoteChanged(e) })
	return x
}

// named is a node with a UID, as the API server gives it one.
func named(n *world.Node) *world.Node {
	n.UID = "uid-" + n.Name
	return n
}

// change makes one, and says when the decider asks for a decision because of what the API has shown.
func (x *term) change(change func(*world.World), now time.Time) (again time.Time) {
	change(x.w)
	for t := range x.w.ShownAnew() {
		again = decide.Earlier(again, x.decider.Seen(decide.View{World: x.w, Now: now}, t))
	}
	return again
}

// round is one decision, in the place of what the API shows. It returns what is told of it, by object.
func (x *term) round(now time.Time) (told map[string][]decide.Event, again time.Time) {
	if x.forgets {
		x.decider.Forget()
	}
	told = map[string][]decide.Event{}
	free := x.w.Pass(now)
	desired, again := x.decider.Decide(decide.View{World: x.w, Now: now})
	for _, one := range desired {
		x.w.Decide(one.Kind, one.Key, one.Decision)
		if len(one.Events) > 0 {
			told[one.Key] = append(told[one.Key], one.Events...)
		}
	}
	return told, decide.Earlier(again, free)
}

// TestDecidesAsFromNothing: over any history, to decide about what has changed alone says what it says to decide about
// everything: the same status, the same labels, the same Events, and the same time to be asked again. In between, no
// node has a label that is not its own.
func TestDecidesAsFromNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, some, now := newTerm(true), newTerm(false), time.Unix(100_000, 0)
		for range rapid.IntRange(5, 40).Draw(t, "steps") {
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				change := drawChange(t, all.w)
				if a, b := all.change(change, now), some.change(change, now); !a.Equal(b) {
					t.Fatalf("what is shown calls for a decision at %v, not at %v", b, a)
				}
			}
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 1, 1000, 2000, 6000, 11_000, 31_000,
				400_000, -5000}).Draw(t, "ms")) *
				time.Millisecond)
			a, when := all.round(now)
			b, then := some.round(now)
			if !reflect.DeepEqual(a, b) {
				t.Fatalf("told of\n%+v, want\n%+v", b, a)
			}
			if !when.Equal(then) {
				t.Fatalf("again at %v, want %v", then, when)
			}
			same(t, all.w, some.w)
			oneLabelEach(t, some.w)
			oneSourceEach(t, some.w)
		}
	})
}

func same(t *rapid.T, all, some *world.World) {
	for _, key := range all.EgressServices() {
		a, b := all.EgressService(key), some.EgressService(key)
		if a.Host != b.Host || !a.Placement.Same(&b.Placement) || !world.SameConditions(a.Conditions, b.Conditions) {
			t.Fatalf("%s is\n%+v, want\n%+v", key, b, a)
		}
	}
	for _, name := range all.Nodes() {
		if a, b := all.Said(name).Labels, some.Said(name).Labels; !reflect.DeepEqual(a, b) {
			t.Fatalf("%s has labels %v, want %v", name, b, a)
		}
	}
}

// oneLabelEach: each EgressService with a node for a host has its label on one node, and no other label is left over.
func oneLabelEach(t *rapid.T, w *world.World) {
	labelled := map[string][]string{}
	for _, name := range w.Nodes() {
		for key := range w.Said(name).Labels {
			if label, is := strings.CutPrefix(key, egressservice.LabelPrefix); is {
				labelled[label] = append(labelled[label], name)
			}
		}
	}
	hosted := map[string]int{}
	for _, key := range w.EgressServices() {
		if s := w.EgressService(key); s.Host != "" && s.Host != world.HostAll {
			hosted[s.Namespace+"-"+s.Name]++
		}
	}
	for label, n := range hosted {
		if n != 1 || len(labelled[label]) != 1 {
			t.Fatalf("label %s: %d EgressServices have a host, and %v have it", label, n, labelled[label])
		}
		delete(labelled, label)
	}
	if len(labelled) > 0 {
		t.Fatalf("labels of nobody: %v", labelled)
	}
}

// oneSourceEach: no two EgressServices have one address, but what was shown of them before it was decided.
func oneSourceEach(t *rapid.T, w *world.World) {
	of := map[netip.Addr]string{}
	for _, key := range w.EgressServices() {
		for _, ip := range w.EgressService(key).Sources() {
			if by := w.PlacedBy(ip); len(by) > 0 {
				t.Fatalf("%s is the source of %s, and of EgressIPs %v", ip, key, by)
			}
			if other := of[ip]; other != "" {
				t.Fatalf("%s is the source of %s and of %s", ip, key, other)
			}
			of[ip] = key
		}
	}
}

// drawChange is what the API shows, what is probed, or what an agent reports that does as it is told.
func drawChange(t *rapid.T, w *world.World) func(*world.World) {
	i, node := rapid.IntRange(0, 5).Draw(t, "which"), fmt.Sprint("n", rapid.IntRange(1, 3).Draw(t, "of"))
	switch rapid.IntRange(0, 12).Draw(t, "kind of change") {
	case 0:
		return compiletest.Draw(t, w)
	case 1, 2, 3:
		return drawn(t, i)
	case 4:
		why := rapid.SampledFrom([]world.Unreachability{"", world.NodeUnreachable, world.AgentAway}).Draw(t, "why")
		return func(w *world.World) { w.SetUnreachable(node, why) }
	case 12:
		not := rapid.Bool().Draw(t, "not answering")
		return func(w *world.World) { w.SetNotAnswering(node, not) }
	case 5:
		p := compiletest.Pod(i, node)
		p.Running = true
		return func(w *world.World) { w.SetPod(p) }
	case 6, 7, 8:
		return obedience(t, node)
	case 9:
		n := named(compiletest.Node(1 + i%3))
		n.Cordoned, n.Ready = rapid.Bool().Draw(t, "cordoned"), rapid.IntRange(0, 3).Draw(t, "ready") > 0
		n.Labels = map[string]string{"color": rapid.SampledFrom([]string{"green", "red"}).Draw(t, "color"),
			egressservice.LabelPrefix + "ns0-s0": rapid.SampledFrom([]string{"", "by hand"}).Draw(t, "left over")}
		return func(w *world.World) { w.SetNode(n) }
	}
	only := rapid.SampledFrom([]string{"", "ns0/s0", "ns1/s1", "ns0/s3"}).Draw(t, "shown")
	return func(w *world.World) { show(w, only) }
}

// drawn is an EgressService or its Service, whose pods run where they are said to; at times two need the same label.
func drawn(t *rapid.T, i int) func(*world.World) {
	if rapid.Bool().Draw(t, "anything") {
		return compiletest.DrawEgressService(t)
	}
	s := compiletest.EgressService(i)
	s.Generation = int64(rapid.IntRange(1, 2).Draw(t, "generation"))
	s.UID += rapid.SampledFrom([]string{"", "", "again"}).Draw(t, "object")
	s.Nodes = rapid.SampledFrom([]world.NodeSelector{{}, {}, green(), {Problem: unreadable}}).Draw(t, "nodes")
	service := compiletest.LoadBalancer(i, compiletest.Pod(i, "n1"), compiletest.Pod(i+3, "n2"))
	service.ExternalLocal = rapid.Bool().Draw(t, "local")
	if rapid.IntRange(0, 2).Draw(t, "somebody else's ingress IPs") == 0 {
		others := slices.Concat(compiletest.EgressAddr(20), compiletest.EgressAddr(0), compiletest.EgressAddr(23),
			compiletest.Node(1).HostAddrs)
		some := rapid.SliceOfNDistinct(rapid.SampledFrom(others), 1, 4, rapid.ID)
		service.LoadBalancerIPs = some.Draw(t, "ingress IPs")
	}
	if rapid.IntRange(0, 3).Draw(t, "ambiguous") == 0 {
		s.Namespace, s.Name = "ns0-s0", fmt.Sprint("a", i) // ns0-s0-a1 is ns0/s0-a1's, too
		if i%2 == 0 {
			s.Namespace, s.Name = "ns0", fmt.Sprint("s0-a", i+1)
		}
		service.Namespace, service.Name = s.Namespace, s.Name
	}
	return func(w *world.World) {
		w.SetEgressService(s)
		w.SetService(service)
	}
}

// show has the API show objects as they were decided.
func show(w *world.World, only string) {
	for _, key := range w.EgressServices() {
		_, should := world.Undone[world.EgressService](w, world.KindEgressService, key)
		if should != nil && (only == "" || only == key) {
			w.SetEgressService(should)
		}
	}
	for _, name := range w.Nodes() {
		if _, should := world.Undone[world.Node](w, world.KindNode, name); should != nil && only == "" {
			w.SetNode(should)
		}
	}
}

// obedience is a report of a node that does what the statuses say, and may have something to say about it.
func obedience(t *rapid.T, node string) func(*world.World) {
	h := world.Holding{Node: node, BootID: "boot-" + node, SteersMore: rapid.IntRange(0, 4).Draw(t, "full") == 0,
		Problems: map[string]string{}, Reasons: map[string]string{}}
	about := rapid.SampledFrom([]string{"", "ns0/s0", "ns1/s1"}).Draw(t, "about")
	if rapid.IntRange(0, 3).Draw(t, "says") == 0 {
		h.Problems[about] = "no table blue"
		h.Reasons[about] = rapid.SampledFrom([]string{"", world.ReasonUnknownNetwork}).Draw(t, "reason")
	}
	older := rapid.IntRange(0, 3).Draw(t, "an agent of before") == 0
	stray := rapid.IntRange(0, 4).Draw(t, "holds for a former object") == 0
	return func(w *world.World) {
		h := h
		h.HeldSince, h.SteersSince = nil, nil
		h.Holds, h.Steers = map[string][]netip.Addr{}, map[string][]world.Assignment{}
		for _, key := range w.EgressServices() {
			s := w.EgressService(key)
			steer(&h, s)
			for _, i := range s.Items {
				if i.Node == node {
					h.Holds[key] = append(h.Holds[key], i.IP)
					h.SayHeld(key, i.IP, s.Since(i))
				}
			}
			for _, l := range s.Leaving {
				if l.Node == node {
					h.Holds[key] = append(h.Holds[key], l.IP)
				}
			}
		}
		if older {
			h.HeldSince, h.SteersSince = nil, nil
		}
		if stray {
			h.Holds["former"] = slices.Concat(compiletest.EgressAddr(20), compiletest.EgressAddr(23))
		}
		w.SetHolding(&h)
	}
}
