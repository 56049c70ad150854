package network_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/world"
)

// TestNetworksOfPodsStay: whatever users do, a namespace with pods keeps its network with its number; no two networks
// have one number; all that is left when users have deleted everything is nothing. Agents that are told of definitions
// in another order have the same networks.
func TestNetworksOfPodsStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster()
		used := map[string]string{} // by namespace: the network of its pods
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			c.step(t, used)
			for range rapid.IntRange(0, 1).Draw(t, "settles") {
				c.settle(t)
			}
			c.checkUsed(t, used)
		}
		c.settle(t)
		c.checkNumbers(t)
		c.checkOrder(t)
		for ns := range used {
			c.show(func(w *world.World) { w.DelPod(ns + "/p") })
		}
		for _, e := range slices.Collect(maps.Keys(c.objects)) {
			if c.objects[e] != nil {
				c.remove(t, e.Kind, e.Key)
			}
		}
		if c.settle(t); len(c.objects) > 0 {
			t.Fatalf("left:\n%s", c.text())
		}
	})
}

// step is something that users do.
func (c *cluster) step(t *rapid.T, used map[string]string) {
	ns := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "namespace")
	name := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name")
	subnet := rapid.SampledFrom([]string{"10.128.0.0/16", "10.130.0.0/16"}).Draw(t, "subnet")
	network := rapid.SampledFrom([]string{"shared", "a_x", "cluster_udn_x"}).Draw(t, "network")
	deleted := rapid.SampledFrom([]world.Kind{world.KindUserNetwork, world.KindClusterNetwork,
		world.KindDefinition}).Draw(t, "kind")
	key := ns + "/" + name
	if deleted == world.KindClusterNetwork {
		key = name
	}
	lacks := func(k world.Kind, key string) bool { return c.objects[world.Entry{Kind: k, Key: key}] == nil }
	switch rapid.IntRange(0, 8).Draw(t, "step") {
	case 0: // a namespace that has pods cannot lose its label (admission), but may be relabelled
		own := used[ns] != "" || rapid.IntRange(0, 3).Draw(t, "own") > 0
		c.namespace(ns, own, tenant(rapid.SampledFrom([]string{"red", "blue"}).Draw(t, "tenant")))
	case 1:
		if lacks(world.KindUserNetwork, ns+"/"+name) {
			c.create(t, userNetwork(ns, name, subnet))
		}
	case 2:
		if lacks(world.KindClusterNetwork, name) {
			c.create(t, clusterNetwork(name, rapid.SampledFrom([]string{"red", "blue"}).Draw(t, "tenant"), subnet))
		}
	case 3:
		if lacks(world.KindDefinition, ns+"/"+name) {
			c.create(t, definition(ns, name, network, subnet+"/24"))
		}
	case 4:
		// Pods start in a network that is there; agents ask their own world.
		if n := c.agent.PrimaryNetwork(ns); n != "" && n != "default" && used[ns] == "" {
			c.settle(t)
			if c.agent.PrimaryNetwork(ns) == n {
				used[ns] = n
				c.pod(ns, "p")
			}
		}
	case 5:
		delete(used, ns)
		c.show(func(w *world.World) { w.DelPod(ns + "/p") })
	case 6, 7:
		if !lacks(deleted, key) {
			c.remove(t, deleted, key)
		}
	case 8:
		c.lead()
	}
}

func (c *cluster) checkUsed(t *rapid.T, used map[string]string) {
	for ns, network := range used {
		if have := c.agent.PrimaryNetwork(ns); have != network {
			t.Fatalf("pods of namespace %s are in network %s, and its network is %q:\n%s", ns, network, have, c.text())
		}
	}
}

func (c *cluster) checkNumbers(t *rapid.T) {
	names := map[int]string{}
	for n := range world.Each[world.Network](&c.agent.View, world.KindNetwork) {
		if other := names[n.ID]; other != "" && other != n.Name {
			t.Fatalf("networks %s and %s have number %d", n.Name, other, n.ID)
		}
		names[n.ID] = n.Name
	}
}

// checkOrder has another agent take in all definitions in another order.
func (c *cluster) checkOrder(t *rapid.T) {
	other := c.newWorld()
	entries := slices.SortedFunc(maps.Keys(c.objects), func(a, b world.Entry) int {
		return strings.Compare(fmt.Sprint(b), fmt.Sprint(a))
	})
	for _, e := range entries {
		set(other, c.objects[e])
	}
	list := func(w *world.World) (out []string) {
		for n := range world.Each[world.Network](&w.View, world.KindNetwork) {
			out = append(out, fmt.Sprint(*n))
		}
		return out
	}
	if have, want := list(other), list(c.agent); !slices.Equal(have, want) {
		t.Fatalf("told in another order, an agent has %v, and this one %v", have, want)
	}
}
