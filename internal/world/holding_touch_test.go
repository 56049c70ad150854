package world_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/world"
)

// TestUncountedReportTouchesNoHolders: a node that says that it holds what no status names it for, and then that it
// does not, touches nobody's holders, whatever else it says of it; where status names it, that counts in both orders.
func TestUncountedReportTouchesNoHolders(t *testing.T) {
	w := compiletest.Big()
	said := &world.Holding{Node: "n400", BootID: "boot", Holds: w.Holding("n400").Holds, Problems: map[string]string{}}
	for _, h := range []*world.Holding{holdingAll(w, "n400"), said, holdingAll(w, "n400")} {
		for _, x := range w.ChangesOf(func() { w.SetHolding(h) }) {
			if x.Kind == world.KindHolders {
				t.Errorf("%v was touched", x)
			}
		}
	}
	e := *w.EgressIP("e7")
	e.Leaving = []world.Leaving{{Node: "n400", IP: e.IPs[0]}}
	holders := world.Entry{Kind: world.KindHolders, Key: "e7"}
	object := world.Entry{Kind: world.KindEgressIP, Key: "e7"}
	touched := w.ChangesOf(func() { w.SetEgressIP(&e) })
	if !slices.Contains(touched, object) || !w.Holds("n400", "e7", e.IPs[0]) {
		t.Errorf("status came to name it: touched %v, holds %v", touched, w.Holds("n400", "e7", e.IPs[0]))
	}
	touched = w.ChangesOf(func() { w.SetHolding(said) })
	if !slices.Contains(touched, holders) || w.Holds("n400", "e7", e.IPs[0]) {
		t.Errorf("named, it no longer says so: touched %v", touched)
	}
}

// holdingAll is a node that says that it holds all that there is, and of all of it that something is wrong.
func holdingAll(w *world.World, node string) *world.Holding {
	h := &world.Holding{Node: node, BootID: "boot", Holds: map[string][]netip.Addr{}, Problems: map[string]string{}}
	for _, name := range w.EgressIPs() {
		h.Holds[name], h.Problems[name] = w.EgressIP(name).IPs, "nb refused it"
	}
	return h
}

// TestOwnProblemTouchesOwnReaders: what a node says keeps it from everything concerns those who have asked about that
// node, and nobody else: it may say so as often as it likes.
func TestOwnProblemTouchesOwnReaders(t *testing.T) {
	w := compiletest.Big()
	told := map[string]struct{}{}
	readers := world.NewReaders(told)
	for _, node := range []string{"n400", "n401"} {
		if have := readers.ReaderOf(node).Reading(w).Problem(node, "e7"); have != "" {
			t.Errorf("%s: %q", node, have)
		}
	}
	h := *holdingAll(w, "n400")
	h.Problems = map[string]string{"": "ovn-controller does not answer"}
	w.SetHolding(&world.Holding{Node: "n400", BootID: h.BootID, Holds: h.Holds})
	clear(told)
	w.SetHolding(&h)
	if _, own := told["n400"]; !own || len(told) != 1 {
		t.Errorf("told: %v", told)
	}
}
