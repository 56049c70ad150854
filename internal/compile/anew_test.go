package compile_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// TestWorldAsSeenAnew: the indexes of a world that has changed often are those of one that is told of its objects for
// the first time, as far as a plan can tell.
func TestWorldAsSeenAnew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := compiletest.Small("n1", world.GatewayMode(rapid.SampledFrom([]string{"shared", "local"}).Draw(t, "mode")))
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			compiletest.Change(t, w)
			// of what two nodes claim, the one that was first keeps it: how it came to be matters there
			if rapid.IntRange(0, 2).Draw(t, "look") > 0 || anyNodeRefused(w) {
				continue
			}
			again := seenAnew(w)
			if again.HasBeenHost() != w.HasBeenHost() { // a former host keeps its leak filter
				continue
			}
			anew := compile.Full(again, all.Features()).Text()
			if d := cmp.Diff(anew, compile.Full(w, all.Features()).Text()); d != "" {
				t.Fatalf("the world differs from one that is seen anew (-anew +this):\n%s", d)
			}
		}
	})
}

func anyNodeRefused(w *world.World) bool {
	for _, name := range w.Nodes() {
		if len(w.Node(name).Problems) > 0 {
			return true
		}
	}
	return false
}

// seenAnew is another world with the same objects.
func seenAnew(w *world.World) *world.World {
	anew := world.New(w.Self, w.Config)
	networks(w, anew)
	for _, name := range w.Nodes() {
		anew.SetNode(w.Said(name))
	}
	anew.SetHost(w.Host())
	each(w, world.KindNamespace, anew.SetNamespace)
	each(w, world.KindAttachment, anew.SetAttachment)
	each(w, world.KindPod, anew.SetPod)
	each(w, world.KindService, anew.SetService)
	each(w, world.KindTraffic, anew.SetTraffic)
	each(w, world.KindEgressIP, anew.SetEgressIP)
	each(w, world.KindEgressService, anew.SetEgressService)
	reports(w, anew)
	return anew
}

func each[T any](w *world.World, k world.Kind, set func(*T)) {
	for o := range world.Each[T](&w.View, k) {
		set(o)
	}
}

// networks tells of those in use first: of two that ask for the same number, the former has it.
func networks(w, anew *world.World) {
	for _, used := range []bool{true, false} {
		for n := range world.Each[world.Network](&w.View, world.KindNetwork) {
			if n.Name != ref.DefaultNetwork && (w.Network(n.Name) != nil) == used {
				anew.SetNetwork(n)
			}
		}
	}
}

// reports tells what nodes say, and what this one has found.
func reports(w, anew *world.World) {
	for _, node := range []string{"n1", "n2", "n3"} {
		if h := w.Holding(node); h != nil {
			anew.SetHolding(h)
		}
		anew.SetTunnel(node, w.Tunnel(node))
		anew.SetClearance(node, w.Clearance(node))
		for i := range 6 {
			at := world.PodAddr{IP: compiletest.Pod(i, node).IPs[0]}
			anew.SetFormers(at, w.Formers(at))
		}
	}
	if w.Own() != nil {
		anew.SetOwn(w.Own())
	}
	if w.Clearing() {
		anew.BeginClearing()
	}
	for i := range 4 {
		for j := range 8 {
			claim := world.EgressAddress{Object: fmt.Sprint("e", i), IP: compiletest.EgressAddr(j)[0]}
			anew.SetYielded(claim, w.Yielded(claim.Object, claim.IP))
			anew.SetOverdue(claim, w.Overdue(claim))
		}
	}
}
