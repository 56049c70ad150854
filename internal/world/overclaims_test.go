package world_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/world"
)

// TestUnnamedAsCounted: how much a node says that no status names it for is known as it goes, whatever changes.
func TestUnnamedAsCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := compiletest.Small("", world.SharedGateway)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			compiletest.Change(t, w)
			for _, node := range []string{"n1", "n2", "n3"} {
				if kept, counted := w.Unnamed(node); kept != counted {
					t.Fatalf("%s: %d, want %d", node, kept, counted)
				}
			}
		}
	})
}
