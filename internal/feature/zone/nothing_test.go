package zone_test

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/feature/zone"
	"github.com/egret-net/egret/internal/world"
)

// term is a world, and what decides about its Nodes.
type term struct {
	w *world.World
	d *zone.Allocator
}

func newTerm() *term {
	return termOf(world.New("", compiletest.Config(world.SharedGateway)))
}

func termOf(w *world.World) *term {
	x := &term{w, zone.NewAllocator()}
	w.FollowChanges(x.d.NoteChanged)
	return x
}

// round decides, and returns the Events by node.
func (x *term) round() map[string][]decide.Event {
	told := map[string][]decide.Event{}
	desired, _ := x.d.Decide(decide.View{World: x.w, Now: time.Unix(1000, 0)})
	for _, one := range desired {
		x.w.Decide(one.Kind, one.Key, one.Decision)
		if len(one.Events) > 0 {
			told[one.Key] = one.Events
		}
	}
	return told
}

// TestAllocatesAsFromNothing: over any history, one that decides when something has changed says what one says that
// decides about everything.
func TestAllocatesAsFromNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some, all := newTerm(), newTerm()
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			wantSame(t, some, all, drawChange(t, all.w))
		}
	})
}

// wantSame makes a change, of which all decides from nothing.
func wantSame(t *rapid.T, some, all *term, change func(*world.World)) {
	change(some.w)
	change(all.w)
	all.d.Forget()
	if a, b := all.round(), some.round(); !reflect.DeepEqual(a, b) {
		t.Fatalf("told of %v, want %v", b, a)
	}
	for _, name := range all.w.Nodes() {
		if a, b := all.w.Said(name), some.w.Said(name); !reflect.DeepEqual(a, b) {
			t.Fatalf("%s is\n%+v, want\n%+v", name, b, a)
		}
	}
}

// drawChange is any, or that the API shows a node as it was decided.
func drawChange(t *rapid.T, w *world.World) func(*world.World) {
	name := rapid.SampledFrom([]string{"", "n1", "n2", "n3"}).Draw(t, "shown")
	if name == "" {
		return compiletest.Draw(t, w)
	}
	return func(w *world.World) {
		if _, should := world.Undone[world.Node](w, world.KindNode, name); should != nil {
			w.SetNode(should)
			return
		}
	}
}

// TestWaitingNodeGetsWhatIsFreed: a node that another one keeps from something gets it when that one goes.
func TestWaitingNodeGetsWhatIsFreed(t *testing.T) {
	x, y := compiletest.HardwareAddr("02:00:00:00:00:01"), compiletest.HardwareAddr("02:00:00:00:00:02")
	claims, recorded := node("z", 3, "10.244.0.0/24"), node("a", 2)
	claims.UplinkMAC, claims.Record.MAC, recorded.Record.MAC = x, y, x
	for name, c := range map[string]struct {
		z, a *world.Node
		is   func(z *world.Node) bool
	}{
		"a subnet": {node("z", 3), node("a", 2, "10.244.0.0/24"), func(z *world.Node) bool {
			return len(z.Subnets) == 1
		}},
		"an address": {host("z", "172.18.0.9", "172.18.0.2"), host("a", "", "172.18.0.9"), func(z *world.Node) bool {
			return recordOf(z.Record) == "172.18.0.9 "
		}},
		"a hardware address": {claims, recorded, func(z *world.Node) bool { return z.Record.MAC == x }},
	} {
		one := termOf(newWorld("10.244.0.0/24/24"))
		one.w.SetNode(c.a)
		one.w.SetNode(c.z)
		for range 3 {
			one.round()
		}
		if c.is(one.w.Node("z")) {
			t.Errorf("%s: it is another node's, and given to z", name)
		}
		one.w.DelNode("a")
		if one.round(); !c.is(one.w.Node("z")) {
			t.Errorf("%s: z does not get it: %+v", name, one.w.Node("z"))
		}
	}
}
