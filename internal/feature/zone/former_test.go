package zone_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// join registers a Node, and returns what all Nodes have then, by name.
func (x *networked) join(name, uid string) (have []string) {
	x.w.SetNode(&world.Node{Name: name, UID: uid})
	desired, _ := x.d.Decide(decide.View{World: x.w, Now: x.now})
	for _, one := range desired {
		x.w.Decide(one.Kind, one.Key, one.Decision)
	}
	for _, name := range x.w.Nodes() {
		have = append(have, fmt.Sprint(name, x.w.Node(name).Subnets))
	}
	return have
}

// leave deletes a Node.
func (x *networked) leave(name string) {
	x.w.DelNode(name)
	x.d.Decide(decide.View{World: x.w, Now: x.now})
}

// TestSubnetOfADeletedNodeRests: another Node gets it only if no other is free, or after a while, and a Node of the
// same name gets it back: the machine and its pods may have gone on.
func TestSubnetOfADeletedNodeRests(t *testing.T) {
	of := func(name string, n int) string {
		return fmt.Sprintf("%s[10.244.%d.0/24 fd00:10:244:%x::/64]", name, n, n)
	}
	of0 := func(name string) string { return name + "[10.244.0.0/24 fd00:10:244::/64]" }
	begin := func(subnets string) *networked {
		x := &networked{t, termOf(newWorld(subnets)), time.Unix(1000, 0)}
		x.join("a", "1")
		x.join("b", "2")
		x.leave("a")
		return x
	}
	want := func(what string, have []string, want ...string) {
		if t.Helper(); !slices.Equal(have, want) {
			t.Errorf("%s: the Nodes have %q, want %q", what, have, want)
		}
	}
	x := begin(dual)
	want("another", x.join("c", "3"), of("b", 1), of("c", 2))
	want("the same", x.join("a", "4"), of0("a"), of("b", 1), of("c", 2))
	x.leave("b")
	x.leave("a")
	want("both in another order", append(x.join("b", "5")[:1:1], x.join("a", "6")[0]), of("b", 1), of0("a"))
	want("again, and its end was not seen", x.join("b", "7"), of0("a"), of("b", 1), of("c", 2))
	x.leave("b")
	x.now = x.now.Add(10 * time.Minute)
	want("later", x.join("d", "8"), of0("a"), of("c", 2), of("d", 1))
	want("taken meanwhile", x.join("b", "9"), of0("a"), of("b", 3), of("c", 2), of("d", 1))

	x = begin("10.244.0.0/23/24,fd00:10:244::/63/64")
	want("no other is free", x.join("c", "3"), of("b", 1), of0("c"))
	x.leave("c")
	x.w.Config.ClusterSubnets = newWorld("10.244.1.0/24/24,fd00:10:244:1::/64/64").Config.ClusterSubnets
	want("a range that is gone", x.join("c", "4"), of("b", 1), "c[]")
}

// TestPartOfADeletedNodeRests: so does its subnet of a network beside the default one.
func TestPartOfADeletedNodeRests(t *testing.T) {
	x := tellNetworked(t)
	x.network(1, "blue", "10.9.0.0/22")
	x.pod("p", "of-blue", "a")
	x.have("a blue [10.9.0.0/24]")
	x.leave("a")
	x.pod("q", "of-blue", "b")
	x.have("b blue [10.9.1.0/24]")
	x.w.SetNode(&world.Node{Name: "a", UID: "again"})
	x.have("a blue [10.9.0.0/24]", "b blue [10.9.1.0/24]")
}
