package world_test

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// blue has the default network's very subnets.
func blue() *world.Network {
	n := *compiletest.Config(world.SharedGateway).DefaultNetwork()
	n.Name, n.ID = "blue", 1
	return &n
}

// inBlue is n<i> with those subnets of network blue that another node has of the default one.
func inBlue(i, other int) *world.Node {
	n := compiletest.Node(i)
	n.Further = map[string]world.NodeNetwork{"blue": {Subnets: compiletest.Node(other).Subnets}}
	return n
}

// TestFormerKeepsInItsNetwork: a node subnet of one network is the node's that was known with it first, whichever nodes
// have the same of another network, and whenever the network itself comes to be known.
func TestFormerKeepsInItsNetwork(t *testing.T) {
	for _, late := range []bool{false, true} {
		w := world.New("n2", compiletest.Config(world.SharedGateway))
		if !late {
			w.SetNetwork(blue())
		}
		w.SetNode(inBlue(1, 3))
		w.SetNode(inBlue(3, 3)) // it has these of the default network
		w.SetNode(inBlue(1, 3))
		w.SetNode(inBlue(3, 3))
		if late {
			touched := w.ChangesOf(func() { w.SetNetwork(blue()) })
			if !slices.Contains(touched, world.Entry{Kind: world.KindSubnets, Key: "n1"}) {
				t.Errorf("network blue is known: %v", touched)
			}
		}
		n1, n3 := w.Node("n1"), w.Node("n3")
		if !reflect.DeepEqual(n1, inBlue(1, 3)) || len(n3.Further) != 0 ||
			!slices.Equal(n3.Subnets, compiletest.Node(3).Subnets) {
			t.Errorf("n1 %+v, n3 %+v", n1, n3)
		}
		if said := fmt.Sprint(n3.Problems); !strings.Contains(said, "network blue is also node n1's") {
			t.Errorf("n3's problems: %s", said)
		}
		w.DelNode("n1")
		if !reflect.DeepEqual(w.Node("n3"), inBlue(3, 3)) {
			t.Errorf("without n1: n3 %+v", w.Node("n3"))
		}
	}
}

// TestNetworkOutOfRange: of a network that is not known, or outside its ranges, or twice of a family, a node has
// nothing.
func TestNetworkOutOfRange(t *testing.T) {
	w := world.New("n2", compiletest.Config(world.SharedGateway))
	narrow := blue()
	narrow.Subnets = []world.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.9.0.0/16"), NodeLen: 26}}
	w.SetNetwork(narrow)
	n := compiletest.Node(3)
	subnets := func(list ...string) world.NodeNetwork {
		var out world.NodeNetwork
		for _, s := range list {
			out.Subnets = append(out.Subnets, netip.MustParsePrefix(s))
		}
		return out
	}
	n.Further = map[string]world.NodeNetwork{
		"blue": subnets("10.9.0.0/16", "10.9.0.0/24", "10.9.0.7/26", "10.244.3.0/26", "fd00:10:244:3::/64",
			"10.9.0.64/26", "10.9.0.128/26"),
		"red": subnets("10.9.1.0/26"),
	}
	w.SetNode(n)
	have := w.Node("n3")
	if want := map[string]world.NodeNetwork{"blue": subnets("10.9.0.64/26")}; !reflect.DeepEqual(have.Further, want) {
		t.Errorf("have %v, want %v", have.Further, want)
	}
	if len(have.Problems) != 6 {
		t.Errorf("problems %q", have.Problems)
	}
	if w.DelNetwork("blue"); w.Node("n3").Further != nil {
		t.Errorf("without the network: %v", w.Node("n3").Further)
	}
}

// TestNetworkNumbers: a number is the network's that asked for it first; the default one has 0, and stays as flags say.
func TestNetworkNumbers(t *testing.T) {
	w := world.New("n2", compiletest.Config(world.SharedGateway))
	second := blue()
	second.Name = "azure"
	w.SetNetwork(blue())
	w.SetNetwork(second)
	if w.Network("blue") == nil || w.Network("azure") != nil {
		t.Errorf("blue is %v, azure %v", w.Network("blue"), w.Network("azure"))
	}
	touched := w.ChangesOf(func() { w.DelNetwork("blue") })
	if w.Network("azure") == nil || !slices.Contains(touched, world.Entry{Kind: world.KindNetwork, Key: "azure"}) {
		t.Errorf("without blue azure is %v; touched %v", w.Network("azure"), touched)
	}
	for _, id := range []int{-1, 0, world.MaxNetworkID + 1} {
		bad := blue()
		bad.ID = id
		if w.SetNetwork(bad); w.Network("blue") != nil {
			t.Errorf("a network has number %d", id)
		}
	}
	own := blue()
	own.Name = ref.DefaultNetwork
	w.SetNetwork(own)
	w.DelNetwork(ref.DefaultNetwork)
	if n := w.Network(ref.DefaultNetwork); n == nil || n.ID != 0 {
		t.Errorf("the default network is %v", n)
	}
	if names := w.Networks(); !slices.Equal(names, []string{"default", "azure", "blue"}) {
		t.Errorf("networks %v", names)
	}
}

// TestMasquerade: networks have the IPv4 addresses that OVN-Kubernetes gives them, and no two the same.
func TestMasquerade(t *testing.T) {
	for _, f := range []world.Family{world.V4, world.V6} {
		if a, ok := (&world.Network{}).Masquerade(f); ok {
			t.Errorf("the default network has %s", a)
		}
		seen := map[netip.Addr]int{}
		for id := 1; id <= world.MaxNetworkID; id++ {
			a, ok := (&world.Network{ID: id}).Masquerade(f)
			if !ok || seen[a] != 0 {
				t.Fatalf("network %d has %s, as network %d", id, a, seen[a])
			}
			seen[a] = id
		}
		if want := [...]string{"169.254.0.11", "fd69::1:b"}[f]; seen[netip.MustParseAddr(want)] != 1 {
			t.Errorf("network 1 has not %s", want)
		}
	}
}

// TestPrimaryNetwork: a namespace that asks for a network of its own has none until there is one, and one that does not
// ask has the default one, whoever names it. Of two that have it, the lower number counts.
func TestPrimaryNetwork(t *testing.T) {
	w := compiletest.Small("n1", world.SharedGateway)
	check := func(when, asks, asksNot string) {
		t.Helper()
		for ns, want := range map[string]string{"asks": asks, "asks-not": asksNot, "unknown": ref.DefaultNetwork} {
			if have := w.PrimaryNetwork(ns); have != want {
				t.Errorf("%s: namespace %s has %q, want %q", when, ns, have, want)
			}
		}
	}
	w.SetNamespace(&world.Namespace{Name: "asks", OwnNetwork: true})
	w.SetNamespace(&world.Namespace{Name: "asks-not"})
	check("without a network", "", ref.DefaultNetwork)
	named, second := blue(), blue()
	named.Namespaces = []string{"asks", "asks-not"}
	second.Name, second.ID, second.Namespaces = "azure", 2, named.Namespaces
	w.SetNetwork(second)
	check("with network azure", "azure", ref.DefaultNetwork)
	w.SetNetwork(named)
	check("with both", "blue", ref.DefaultNetwork)
	w.SetNetwork(blue())
	w.DelNetwork("azure")
	check("with neither", "", ref.DefaultNetwork)
}
