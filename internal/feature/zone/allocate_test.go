package zone_test

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/feature/zone"
	"github.com/egret-net/egret/internal/networks"
	"github.com/egret-net/egret/internal/world"
)

func newWorld(subnets string) *world.World {
	s, err := world.ParseClusterSubnets(subnets)
	if err != nil {
		panic(err)
	}
	w := world.New("", &world.Config{ClusterSubnets: s, JoinSubnets: world.DefaultJoinSubnets(),
		TransitSubnets: world.DefaultTransitSubnets()})
	networks.KeepTables(w)
	return w
}

const dual = "10.244.0.0/16/24,fd00:10:244::/48/64"

func node(name string, id int, subnets ...string) *world.Node {
	n := &world.Node{Name: name, ID: id}
	for _, s := range subnets {
		n.Subnets = append(n.Subnets, netip.MustParsePrefix(s))
	}
	return n
}

// show is an allocation in one line, without its problems.
func show(a zone.Allocation) string { return fmt.Sprint(a.ID, a.Subnets, a.Join, a.Transit) }

func TestAllocateToNewNodes(t *testing.T) {
	w := newWorld(dual)
	w.SetNode(node("a", 0))
	w.SetNode(node("b", 0))
	all := zone.Allocate(w)
	for name, want := range map[string]string{
		"a": "2 [10.244.0.0/24 fd00:10:244::/64] [100.64.0.2/16 fd98::2/64] [100.88.0.2/16 fd97::2/64]",
		"b": "3 [10.244.1.0/24 fd00:10:244:1::/64] [100.64.0.3/16 fd98::3/64] [100.88.0.3/16 fd97::3/64]",
	} {
		if have := show(all[name]); have != want || len(all[name].Problems) > 0 {
			t.Errorf("%s: have %s %v, want %s", name, have, all[name].Problems, want)
		}
	}
}

func TestAllocateKeepsAndFillsGaps(t *testing.T) {
	w := newWorld("10.244.0.0/16/24")
	w.SetNode(node("a", 7, "10.244.9.0/24"))
	w.SetNode(node("b", 2, "10.244.0.0/24"))
	w.SetNode(node("new", 0))
	all := zone.Allocate(w)
	if a := all["a"]; a.ID != 7 || a.Subnets[0].String() != "10.244.9.0/24" {
		t.Errorf("a: %+v", a)
	}
	if n := all["new"]; n.ID != 3 || n.Subnets[0].String() != "10.244.1.0/24" {
		t.Errorf("new: %+v", n)
	}
}

func TestAllocateRepairs(t *testing.T) {
	for name, c := range map[string]struct {
		node    *world.Node
		want    string
		problem string
	}{
		"id of another":     {node("z", 2), "3 [10.244.1.0/24]", "id 2 is also node a's"},
		"the router's id":   {node("z", 1), "3 [10.244.1.0/24]", "id 1 is not between 2"},
		"id too high":       {node("z", 70000), "3 [10.244.1.0/24]", "id 70000"},
		"negative id":       {node("z", -4), "3 [10.244.1.0/24]", "id -4"},
		"subnet of another": {node("z", 3, "10.244.0.0/24"), "3 [10.244.1.0/24]", "10.244.0.0/24 is also node a's"},
		"foreign subnet":    {node("z", 3, "10.99.0.0/24"), "3 [10.244.1.0/24]", "is no node's part"},
		"larger subnet":     {node("z", 3, "10.244.0.0/20"), "3 [10.244.1.0/24]", "is no node's part"},
		"address":           {node("z", 3, "10.244.4.7/24"), "3 [10.244.1.0/24]", "is an address"},
		"two subnets":       {node("z", 3, "10.244.4.0/24", "10.244.5.0/24"), "3 [10.244.4.0/24]", "second"},
		"family not there":  {node("z", 3, "fd00::/64"), "3 [10.244.1.0/24]", ""},
		"unreadable, as said": {&world.Node{Name: "z", Problems: []world.NodeProblem{{Text: "node-id: no number"}}},
			"3 [10.244.1.0/24]", "node-id: no number"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld("10.244.0.0/16/24")
			w.SetNode(node("a", 2, "10.244.0.0/24"))
			w.SetNode(c.node)
			all := zone.Allocate(w)
			z := all["z"]
			if have := fmt.Sprint(z.ID, z.Subnets); have != c.want || !strings.Contains(decide.Messages(z.Problems),
				c.problem) {
				t.Errorf("have %s %s, want %s %q", have, decide.Messages(z.Problems), c.want, c.problem)
			}
			if a := all["a"]; a.ID != 2 || len(a.Problems) > 0 {
				t.Errorf("the other node: %+v", a)
			}
		})
	}
}

func TestAllocateWhenAllIsTaken(t *testing.T) {
	w := newWorld("10.244.0.0/23/24,fd00:10:244::/48/64")
	for _, n := range []string{"a", "b", "c"} {
		w.SetNode(node(n, 0))
	}
	all := zone.Allocate(w)
	c := all["c"]
	if fmt.Sprint(c.Subnets) != "[fd00:10:244:2::/64]" || c.ID != 4 || len(c.Problems) != 1 ||
		!strings.Contains(c.Problems[0].Message, "no IPv4 subnet is free") {
		t.Errorf("c: %+v", c)
	}
	if len(all["a"].Problems)+len(all["b"].Problems) > 0 || len(all["b"].Subnets) != 2 {
		t.Errorf("others: %+v", all)
	}
	w.Config.JoinSubnets = []netip.Prefix{netip.MustParsePrefix("100.64.0.0/30")}
	all = zone.Allocate(w)
	if all["a"].ID != 2 || all["b"].ID != 0 || !strings.Contains(decide.Messages(all["b"].Problems),
		"no id up to 2 is free") {
		t.Errorf("small join subnet: %+v", all)
	}
}

// For any nodes: nothing is given twice, what was given stands, and what nodes say again changes nothing, in whatever
// order.
func TestAllocateProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, back := newWorld(dual), newWorld(dual)
		var nodes []*world.Node
		for i := range rapid.IntRange(0, 8).Draw(t, "nodes") {
			subnet := rapid.SampledFrom([]string{"10.244.0.0/24", "10.244.1.0/24", "10.244.2.0/24", "10.244.2.0/25",
				"fd00:10:244:1::/64", "10.9.0.0/24"})
			nodes = append(nodes, node(fmt.Sprintf("n%d", i), rapid.IntRange(-1, 6).Draw(t, "id"),
				rapid.SliceOfN(subnet, 0, 3).Draw(t, "subnets")...))
		}
		for i := range nodes {
			w.SetNode(nodes[i])
			back.SetNode(nodes[i])
		}
		for _, n := range slices.Backward(nodes) {
			back.SetNode(n)
		}
		all := zone.Allocate(w)
		if other := zone.Allocate(back); !reflect.DeepEqual(all, other) {
			t.Fatalf("said again, it matters: %+v, %+v", all, other)
		}
		ids, subnets := map[int]bool{}, map[netip.Prefix]bool{}
		for name, a := range all {
			if ids[a.ID] || a.ID < 2 || len(a.Subnets) != 2 {
				t.Fatalf("%s: %+v of %+v", name, a, all)
			}
			ids[a.ID] = true
			for _, p := range a.Subnets {
				if subnets[p] {
					t.Fatalf("%s is given twice", p)
				}
				subnets[p] = true
			}
			w.SetNode(&world.Node{Name: name, ID: a.ID, Subnets: a.Subnets, Join: a.Join, Transit: a.Transit})
		}
		w.SetNode(node("another", 0))
		for name, a := range zone.Allocate(w) {
			if old, had := all[name]; had && show(old) != show(a) || len(a.Problems) > 0 {
				t.Fatalf("%s: %s became %s, %v", name, show(old), show(a), a.Problems)
			}
		}
	})
}
