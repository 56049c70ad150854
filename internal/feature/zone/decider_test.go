package zone_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/feature/zone"
	"github.com/egret-net/egret/internal/world"
)

// allocated has all decided after a change of node z, or of the configuration, which changes nowhere else. It returns
// what is said to be wrong with node z, and how many Events tell of it.
func allocated(w *world.World, d *zone.Allocator) (says string, events int) {
	d.NoteChanged(world.Entry{Kind: world.KindNode, Key: "z"})
	desired, _ := d.Decide(decide.View{World: w, Now: time.Unix(1e9, 0)})
	for _, one := range desired {
		if one.Key == "z" {
			events = len(one.Events)
			says = one.Decision.Status.(world.Allocation).Problem
		}
	}
	return says, events
}

// TestProblemIsToldOnce: other numbers in the words about the same thing are no news, another problem is, and so is one
// that has ended and comes back.
func TestProblemIsToldOnce(t *testing.T) {
	w, d := newWorld("10.244.0.0/24/24"), zone.NewAllocator()
	small := func(subnets string) func() {
		return func() { w.Config.JoinSubnets = []netip.Prefix{netip.MustParsePrefix(subnets)} }
	}
	w.SetNode(node("a", 2, "10.244.0.0/24"))
	for i, c := range []struct {
		change func()
		says   string
		events int
	}{
		{func() { w.SetNode(node("z", 70000)) }, "id 70000 is not between", 1},
		{func() { w.SetNode(node("z", 80000)) }, "id 80000 is not between", 0},
		{small("100.64.0.0/30"), "no id up to 2 is free", 1},
		{func() { w.SetNode(node("z", 2)) }, "id 2 is also node a's", 1},
		{func() { w.SetNode(node("z", 0)) }, "no id up to 2 is free", 0},
		{small("100.64.0.0/16"), "no IPv4 subnet is free", 0},
		{small("100.64.0.0/30"), "no id up to 2 is free", 1},
	} {
		c.change()
		if says, events := allocated(w, d); !strings.Contains(says, c.says) || events != c.events {
			t.Errorf("step %d: %d Events, want %d; %q is said", i, events, c.events, says)
		}
	}
}

// TestProblemOfAFormerTerm: what a node says to be wrong, a former leader has told of.
func TestProblemOfAFormerTerm(t *testing.T) {
	w := newWorld("10.244.0.0/24/24")
	n := node("z", 70000)
	n.AllocationProblem = "id 60000 is not between 2 and 32767: the node gets another"
	w.SetNode(n)
	if says, events := allocated(w, zone.NewAllocator()); events != 0 || says == n.AllocationProblem {
		t.Errorf("%d Events of %q", events, says)
	}
}

// TestMoveIsTold: each change of what a node is recorded with, once, and not its first record; and one that is refused.
func TestMoveIsTold(t *testing.T) {
	w, d := newWorld("10.244.0.0/24/24"), zone.NewAllocator()
	for i, c := range []struct {
		host *world.Node
		want string // of the Events
	}{
		{host("z", "172.18.0.2"), ""},
		{host("z", "172.18.0.2", "172.18.0.2"), ""},
		{host("z", "172.18.0.9", "172.18.0.2"), "NodeAddressChanged recorded as the node's addresses are 172.18.0.9"},
		{host("z", "172.18.0.9", "172.18.0.2"), ""}, // not written yet
		{host("z", "172.18.0.9", "172.18.0.9"), ""},
		{host("z", "8.8.8.8", "172.18.0.9"), "NodeAllocation address 8.8.8.8 is in no network that another node has"},
		{host("z", "172.18.0.2", "172.18.0.9"), "NodeAddressChanged"},
	} {
		w.SetNode(c.host)
		d.NoteChanged(world.Entry{Kind: world.KindNode, Key: "z"})
		desired, _ := d.Decide(decide.View{World: w, Now: time.Unix(1e9, 0)})
		have := ""
		for _, one := range desired {
			for _, e := range one.Events {
				have += e.Reason + " " + e.Message
			}
		}
		if !strings.Contains(have, c.want) || c.want == "" && have != "" {
			t.Errorf("step %d: %q, want %q", i, have, c.want)
		}
	}
}
