package world_test

import (
	"net/netip"
	"reflect"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/world"
)

// TestHeldAt: who says since its boot that it holds an address, for what; a change of that, of since when, and of the
// boot, touches what has read it. An agent does not keep it.
func TestHeldAt(t *testing.T) {
	ip, other := compiletest.EgressAddr(0)[0], compiletest.EgressAddr(1)[0]
	w := world.New("", compiletest.Config(world.SharedGateway))
	for i := 1; i <= 2; i++ {
		w.SetNode(compiletest.Node(i))
	}
	read := map[world.Touch]bool{}
	touched := func(list []world.Touch) (is bool) {
		for _, x := range list {
			is = is || read[x]
		}
		return is
	}
	type held = map[string][]netip.Addr
	says := func(node, boot string, holds held) func() []world.Touch {
		return func() []world.Touch { return w.SetHolding(&world.Holding{Node: node, BootID: boot, Holds: holds}) }
	}
	n1, n2 := world.HeldFor{Node: "n1", Object: "e"}, world.HeldFor{Node: "n2", Object: "shop/web"}
	for _, x := range []struct {
		name   string
		change func() []world.Touch
		want   []world.HeldFor
		news   bool
	}{
		{"nobody", func() []world.Touch { return nil }, nil, false},
		{"one", says("n2", "boot-n2", held{"shop/web": {ip}}), []world.HeldFor{n2}, true},
		{"two", says("n1", "boot-n1", held{"e": {ip, ip}}), []world.HeldFor{n1, n2}, true},
		{"the same", says("n1", "boot-n1", held{"e": {ip}}), []world.HeldFor{n1, n2}, false},
		{"another address", says("n1", "boot-n1", held{"e": {ip, other}}),
			[]world.HeldFor{n1, n2}, false},
		{"of a former boot", says("n1", "before", held{"e": {ip, other}}),
			[]world.HeldFor{n2}, true},
		{"of this boot", says("n1", "boot-n1", held{"e": {ip}}),
			[]world.HeldFor{n1, n2}, true},
		{"since when", func() []world.Touch {
			h := &world.Holding{Node: "n1", BootID: "boot-n1", Holds: held{"e": {ip}}}
			h.SayHeld("e", ip, 7)
			return w.SetHolding(h)
		}, []world.HeldFor{n1, n2}, true},
		{"one lets go", says("n2", "boot-n2", nil), []world.HeldFor{n1}, true},
		{"the Node is gone", func() []world.Touch { return w.DelNode("n1") }, nil, true},
		{"the report is gone", func() []world.Touch { return w.DelHolding("n1") }, nil, true},
	} {
		if have := touched(x.change()); have != x.news {
			t.Errorf("%s: touched %v", x.name, have)
		}
		clear(read)
		if have := w.Recording(func(x world.Touch) { read[x] = true }).HeldAt(ip); !reflect.DeepEqual(have, x.want) {
			t.Errorf("%s: have %v, want %v", x.name, have, x.want)
		}
	}
	agent := world.New("n1", compiletest.Config(world.SharedGateway))
	agent.SetNode(compiletest.Node(1))
	agent.SetHolding(&world.Holding{Node: "n1", BootID: "boot-n1", Holds: held{"e": {ip}}})
	if have := agent.HeldAt(ip); len(have) > 0 {
		t.Errorf("an agent knows of %v", have)
	}
}
