package world_test

import (
	"fmt"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// TestDerivedAreAsComputedFromNothing: whatever changes, each value that is kept is what it would be if nobody had read
// it before. A world as another node sees it keeps its own, and one that forgets its Readers keeps none.
func TestDerivedAreAsComputedFromNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		self := rapid.SampledFrom([]string{"", "n1"}).Draw(t, "self")
		w := compiletest.Small(self, world.SharedGateway)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			for _, asked := range []*world.World{w.As("n2"), w} {
				for p := range asked.EachPod() {
					asked.Claims(p, ref.DefaultNetwork, world.V4)
					asked.Standbys(p, world.V6)
				}
				asked.PrimaryNetwork("nowhere")
			}
			if rapid.IntRange(0, 9).Draw(t, "forget") == 0 {
				w.ForgetReaders()
			}
			compiletest.Change(t, w)
			if wrong := w.WrongValues(); wrong != "" {
				t.Fatal(wrong)
			}
		}
	})
}

// TestOverclaims: a node says too much as long as it says that it holds more than MostStanding addresses that no status
// names it for; who has read that is told, and nobody else.
func TestOverclaims(t *testing.T) {
	w := compiletest.Small("", world.SharedGateway)
	e := *compiletest.EgressIP(0, "", compiletest.EgressAddr(0)[0])
	named := e
	named.Items = []world.Assignment{{Node: "n1", IP: e.IPs[0]}}
	says := func(many int) func() {
		return func() {
			h := &world.Holding{Node: "n1", BootID: "boot-n1", Holds: map[string][]netip.Addr{"e0": e.IPs}}
			for i := range many - 1 {
				o := fmt.Sprint("o", i)
				h.Holds[o] = append(h.Holds[o], compiletest.V4(192, 0, 2, i))
			}
			w.SetHolding(h)
		}
	}
	w.SetEgressIP(&e)
	told := false
	reader := world.NewReader(func() { told = true })
	reader.Reading(w).Overclaims("n1")
	for _, x := range []struct {
		name   string
		change func()
		want   bool
		news   bool
	}{
		{"as many as are believed", says(world.MostStanding), false, false},
		{"one more", says(world.MostStanding + 1), true, true},
		{"two more", says(world.MostStanding + 2), true, false},
		{"and one less, of which one is its own", func() {
			says(world.MostStanding + 1)()
			w.SetEgressIP(&named)
		}, false, true},
		{"no longer its own", func() { w.SetEgressIP(&e) }, true, true},
		{"nothing", func() { w.DelHolding("n1") }, false, true},
		{"again", says(world.MostStanding + 1), true, true},
	} {
		told = false
		x.change()
		if have := reader.Reading(w).Overclaims("n1"); have != x.want || told != x.news {
			t.Errorf("%s: %v, and its reader is told: %v", x.name, have, told)
		}
	}
}
