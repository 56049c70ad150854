package world_test

import (
	"fmt"
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
	told := false
	reader := world.NewReader(func() { told = true })
	type held = map[string][]netip.Addr
	says := func(node, boot string, holds held) func() {
		return func() { w.SetHolding(&world.Holding{Node: node, BootID: boot, Holds: holds}) }
	}
	n1, n2 := world.HeldFor{Node: "n1", Object: "e"}, world.HeldFor{Node: "n2", Object: "shop/web"}
	for _, x := range []struct {
		name   string
		change func()
		want   []world.HeldFor
		news   bool
	}{
		{"nobody", func() {}, nil, false},
		{"one", says("n2", "boot-n2", held{"shop/web": {ip}}), []world.HeldFor{n2}, true},
		{"two", says("n1", "boot-n1", held{"e": {ip, ip}}), []world.HeldFor{n1, n2}, true},
		{"the same", says("n1", "boot-n1", held{"e": {ip}}), []world.HeldFor{n1, n2}, false},
		{"another address", says("n1", "boot-n1", held{"e": {ip, other}}),
			[]world.HeldFor{n1, n2}, false},
		{"of a former boot", says("n1", "before", held{"e": {ip, other}}),
			[]world.HeldFor{n2}, true},
		{"of this boot", says("n1", "boot-n1", held{"e": {ip}}),
			[]world.HeldFor{n1, n2}, true},
		{"since when", func() {
			h := &world.Holding{Node: "n1", BootID: "boot-n1", Holds: held{"e": {ip}}}
			h.SayHeld("e", ip, 7)
			w.SetHolding(h)
		}, []world.HeldFor{n1, n2}, true},
		{"one lets go", says("n2", "boot-n2", nil), []world.HeldFor{n1}, true},
		{"the Node is gone", func() { w.DelNode("n1") }, nil, true},
		{"the report is gone", func() { w.DelHolding("n1") }, nil, true},
	} {
		told = false
		if x.change(); told != x.news {
			t.Errorf("%s: told %v", x.name, told)
		}
		if have := reader.Reading(w).HeldAt(ip); !reflect.DeepEqual(have, x.want) {
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

// TestHeldByManyClaims: what a node says is as long as it likes, of one address or of one object: each thing that it
// says is looked at once. With lists in the place of sets there would be 30 million looks at an address here.
func TestHeldByManyClaims(t *testing.T) {
	const many = 8192
	for name, claim := range map[string]func(i int) world.EgressAddress{
		"one address": func(i int) world.EgressAddress {
			return world.EgressAddress{Object: fmt.Sprint("e", i), IP: compiletest.V4(192, 0, 2, 1)}
		},
		"one object": func(i int) world.EgressAddress {
			return world.EgressAddress{Object: "e", IP: world.Nth(netip.MustParsePrefix("198.18.0.0/15"), i)}
		},
	} {
		w := world.New("", compiletest.Config(world.SharedGateway))
		w.SetNode(compiletest.Node(1))
		for _, boot := range []string{"boot-n1", "next", "boot-n1"} {
			h := &world.Holding{Node: "n1", BootID: boot, Holds: map[string][]netip.Addr{}}
			for i := range many {
				c := claim(i)
				h.Holds[c.Object] = append(h.Holds[c.Object], c.IP)
			}
			w.SetHolding(h)
		}
		n := 0
		for ip := range map[netip.Addr]bool{claim(0).IP: true, claim(many - 1).IP: true} {
			n += len(w.HeldAt(ip))
		}
		if want := map[string]int{"one address": many, "one object": 2}[name]; n != want {
			t.Errorf("%s: %d claims, want %d", name, n, want)
		}
		w.SetHolding(&world.Holding{Node: "n1", BootID: "boot-n1"})
		if n := len(w.HeldAt(claim(0).IP)); n > 0 {
			t.Errorf("%s: %d claims stay", name, n)
		}
	}
}
