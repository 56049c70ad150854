package world_test

import (
	"cmp"
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/world"
)

// TestSlotsKeepTheirOrder: which of two slots comes first as text does not depend on the nodes that they lead to, nor
// on whether that is over the transit switch or the own gateway router; and no address stands for two.
func TestSlotsKeepTheirOrder(t *testing.T) {
	c := &world.Config{SlotSubnets: world.DefaultSlotSubnets()}
	rapid.Check(t, func(t *rapid.T) {
		f := world.Family(rapid.IntRange(0, 1).Draw(t, "family"))
		text := func(slot int) string {
			id := rapid.IntRange(2, 1<<15-1).Draw(t, "id")
			if rapid.Bool().Draw(t, "own") {
				return c.SlotJoin(slot, id, f).Addr().String()
			}
			return c.SlotTransit(slot, id, f).Addr().String()
		}
		for a := range world.MaxSlots {
			for b := range a {
				want := cmp.Compare(c.SlotTransit(a, 2, f).Addr().String(), c.SlotTransit(b, 2, f).Addr().String())
				if x, y := text(a), text(b); want == 0 || cmp.Compare(x, y) != want {
					t.Fatalf("slots %d and %d: %s and %s compare otherwise than those of node 2", a, b, x, y)
				}
			}
		}
	})
}

func TestSlotAddresses(t *testing.T) {
	c := &world.Config{SlotSubnets: world.DefaultSlotSubnets()}
	for _, x := range []struct{ have, want string }{
		{c.SlotTransit(0, 3, world.V4).String(), "100.96.0.3/17"}, {c.SlotJoin(0, 3, world.V4).String(),
			"100.96.128.3/17"},
		{c.SlotTransit(7, 32767, world.V4).String(), "100.103.127.255/17"}, {c.SlotJoin(7, 1, world.V4).String(),
			"100.103.128.1/17"},
		{c.SlotTransit(8, 3, world.V4).String(), "254.100.0.3/16"},
		{c.SlotJoin(63, 32767, world.V4).String(), "254.211.127.255/16"},
		{c.SlotTransit(8, 3, world.V6).String(), "fd96:1000::3/32"},
		{c.SlotJoin(63, 3, world.V6).String(), "fd96:106f::3/32"},
		{c.SlotTransit(0, 3, world.V6).String(), "fd96:8::3/33"}, {c.SlotJoin(7, 3, world.V6).String(),
			"fd96:f:8000::3/33"},
	} {
		if x.have != x.want {
			t.Errorf("have %s, want %s", x.have, x.want)
		}
	}
}
