package world_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/world"
)

// TestReadersOfReportsAreTouched: after any change of reports, statuses and nodes, in any order, what a reader of
// reports was told before still stands, or something that it read was touched.
func TestReadersOfReportsAreTouched(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := compiletest.Small("n1", world.SharedGateway)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			before := readReports(w)
			touched := compiletest.Change(t, w)
			for question, now := range readReports(w) {
				old := before[question]
				seen := slices.ContainsFunc(touched, func(x world.Touch) bool { return old.reads[x] })
				if old.answer != now.answer && !seen {
					t.Fatalf("%s: %s became %s; read %v, touched %v", question, old.answer, now.answer, old.reads, touched)
				}
			}
		}
	})
}

type reading struct {
	answer string
	reads  map[world.Touch]bool
}

// readReports are all that can be asked about reports, each with its answer and what was read for it.
func readReports(w *world.World) map[string]reading {
	out := map[string]reading{}
	ask := func(question string, f func(w *world.View) any) {
		r := reading{reads: map[world.Touch]bool{}}
		r.answer = fmt.Sprint(f(w.Recording(func(x world.Touch) { r.reads[x] = true })))
		out[question] = r
	}
	for i := range 4 {
		e := fmt.Sprint("e", i)
		for _, ip := range slices.Concat(compiletest.EgressAddr(i), compiletest.SecondaryAddr(i)) {
			ask(fmt.Sprint("Holders ", e, ip), func(w *world.View) any { return w.Holders(e, ip) })
			for _, n := range []string{"n1", "n2", "n3"} {
				ask(fmt.Sprint("Holds ", n, e, ip), func(w *world.View) any { return w.Holds(n, e, ip) })
			}
		}
		for _, n := range []string{"n1", "n2", "n3"} {
			to := world.Assignment{Node: n, IP: compiletest.EgressAddr(0)[0]}
			ask(fmt.Sprint("Problem ", n, e), func(w *world.View) any { return w.Problem(n, e) })
			ask(fmt.Sprint("Conflicts ", n, e), func(w *world.View) any { return w.Conflicts(n, e) })
			ask(fmt.Sprint("SteersTo ", n, e), func(w *world.View) any { return w.SteersTo(n, e, to) })
			ask(fmt.Sprint("Steers ", n, e), func(w *world.View) any {
				return w.Steers(n, e, world.V4, []world.Assignment{to})
			})
		}
	}
	return out
}

// TestUncountedReportTouchesNoHolders: a node that says that it holds what no status names it for, and then that it does
// not, touches nobody's holders, whatever else it says of it; where status names it, that counts in both orders.
func TestUncountedReportTouchesNoHolders(t *testing.T) {
	w := compiletest.Big()
	said := &world.Holding{Node: "n400", BootID: "boot", Holds: w.Holding("n400").Holds, Problems: map[string]string{}}
	for _, h := range []*world.Holding{holdingAll(w, "n400"), said, holdingAll(w, "n400")} {
		for _, x := range w.SetHolding(h) {
			if x.Kind == world.KindHolders {
				t.Errorf("%v was touched", x)
			}
		}
	}
	e := *w.EgressIP("e7")
	e.Leaving = []world.Leaving{{Node: "n400", IP: e.IPs[0]}}
	holders := world.Touch{Kind: world.KindHolders, Key: "e7"}
	object := world.Touch{Kind: world.KindEgressIP, Key: "e7"}
	if touched := w.SetEgressIP(&e); !slices.Contains(touched, object) || !w.Holds("n400", "e7", e.IPs[0]) {
		t.Errorf("status came to name it: touched %v, holds %v", touched, w.Holds("n400", "e7", e.IPs[0]))
	}
	if touched := w.SetHolding(said); !slices.Contains(touched, holders) || w.Holds("n400", "e7", e.IPs[0]) {
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
