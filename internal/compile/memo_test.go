package compile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/world"
)

// TestMemoIsFull: after any sequence of changes, some of them seen together, the memo equals the full compile.
func TestMemoIsFull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := compiletest.Small("n1", world.GatewayMode(rapid.SampledFrom([]string{"shared", "local"}).Draw(t, "mode")))
		if rapid.IntRange(0, 3).Draw(t, "a crowd of EgressServices") == 0 {
			compiletest.Crowd(w)
		}
		m := compile.NewMemo(all.Features())

		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			compiletest.Change(t, w)
			if rapid.Bool().Draw(t, "more before an update") {
				continue
			}
			m.Update(w)

			if d := cmp.Diff(compile.Full(w, all.Features()).Text(), m.State.Text()); d != "" {
				t.Fatalf("the memo differs from the full compile (-full +memo):\n%s", d)
			}
		}
	})
}

// TestMemoForgets: when all objects are gone, so is everything that was remembered of them.
func TestMemoForgets(t *testing.T) {
	w := compiletest.Small("n1", world.SharedGateway)
	m := compile.NewMemo(all.Features())
	m.Update(w)
	before := m.Size()
	p := compiletest.Pod(1, "n1")
	w.SetNamespace(&world.Namespace{Name: p.Namespace})
	w.SetPod(p)
	m.Update(w)
	w.DelPod(p.Key())
	w.DelNamespace(p.Namespace)
	m.Update(w)
	if after := m.Size(); after != before {
		t.Errorf("the memo holds %d units, and %d before the pod came and went", after, before)
	}
}
