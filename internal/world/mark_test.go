package world_test

import (
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/world"
)

// TestMarkIsOneOwners: of two EgressIPs with one mark the older has it, whoever comes first, and its readers follow.
func TestMarkIsOneOwners(t *testing.T) {
	w := compiletest.Small("n1", world.SharedGateway)
	set := func(name string, age, mark int) {
		e := compiletest.EgressIP(age, "")
		e.Name, e.Mark = name, mark
		w.SetEgressIP(e)
	}
	told := 0
	r := world.NewReader(func() { told++ })
	wants := func(a, b int) {
		t.Helper()
		r.Read(w, func(v *world.View) {
			if x, y := v.MarkOf("a"), v.MarkOf("b"); x != a || y != b {
				t.Errorf("a has %d and b %d, want %d and %d", x, y, a, b)
			}
		})
		told = 0
	}
	set("b", 2, 50000)
	wants(0, 50000)
	set("a", 1, 50000)
	if told == 0 {
		t.Error("nobody says that b has lost its mark")
	}
	wants(50000, 0)
	set("a", 3, 50000)
	wants(0, 50000)
	w.DelEgressIP("b")
	if told == 0 {
		t.Error("nobody says that a gets the mark")
	}
	wants(50000, 0)
	set("a", 3, 50001)
	wants(50001, 0)
}
