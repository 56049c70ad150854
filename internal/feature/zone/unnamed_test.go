package zone_test

import (
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/feature/zone"
	"github.com/egret-net/egret/internal/networks"
	"github.com/egret-net/egret/internal/world"
)

// says has node a say that it has subnets of networks, as another leader wrote them.
func (x *networked) says(names ...string) {
	n := node("a", 2, "10.244.0.0/24")
	n.Further = map[string]world.NodeNetwork{}
	for _, name := range names {
		n.Further[name] = world.NodeNetwork{Subnets: []netip.Prefix{netip.MustParsePrefix("10.7.0.0/24")}}
	}
	x.w.SetNode(n)
}

// stays has all decided, and fails unless node a says that it has subnets of these networks.
func (x *networked) stays(names ...string) (again time.Time) {
	x.Helper()
	again = x.have()
	if said := slices.Sorted(maps.Keys(x.w.Said("a").Further)); !slices.Equal(said, names) {
		x.Errorf("the node says %q, want %q", said, names)
	}
	return again
}

// leads has another controller begin to lead, which knows nothing.
func (x *networked) leads() {
	x.d = zone.NewAllocator()
	x.w.FollowChanges(x.d.NoteChanged)
}

// TestGoneNetworks: a leader that has never known a network removes its subnets from Nodes when no object has named it
// for a while, which begins anew when another Node says so later. Names that no UserDefinedNetwork can have are
// somebody else's.
func TestGoneNetworks(t *testing.T) {
	x := tellNetworked(t)
	others := []string{"_", "cluster_udn_", "other", "shop_", "shop_of_others"}
	x.says(append(others, "shop_gone", "cluster_udn_gone")...)
	x.leads()
	all := slices.Sorted(slices.Values(append(others, "cluster_udn_gone", "shop_gone")))
	again := x.stays(all...)
	wait := again.Sub(x.now)
	if wait < 5*time.Minute || wait > time.Hour {
		t.Fatalf("the subnets go %s later", wait)
	}
	x.now = again.Add(-time.Second)
	if again != x.stays(all...) {
		t.Error("they go at another time now")
	}
	x.now = again
	if again := x.stays(others...); !again.IsZero() {
		t.Errorf("something else is due at %v", again)
	}
	x.says(others...)
	x.stays(others...)
	x.now = x.now.Add(time.Hour)
	later := node("c", 4, "10.244.2.0/24")
	later.Further = map[string]world.NodeNetwork{"shop_gone": {Subnets: later.Subnets}}
	x.w.SetNode(later)
	if again := x.stays(others...); again.Sub(x.now) != wait {
		t.Errorf("what another Node says goes at %v, want %v later", again, wait)
	}
}

// TestNamedNetworksStay: an object that names a network keeps its subnets, however it is refused. The time begins again
// when the last one goes.
func TestNamedNetworksStay(t *testing.T) {
	const name = "shop_mine"
	config := networks.Config{Name: name}
	for what, put := range map[string]func(*world.World) (remove func()){
		"a request that cannot be read": func(w *world.World) func() {
			r := &networks.Request{Namespace: "shop", Name: "mine", UID: "1", Config: config, Problem: "bad"}
			world.Set(w, world.KindUserNetwork, r)
			return func() { world.Del[networks.Request](w, world.KindUserNetwork, r.Key()) }
		},
		"a request for all of a cluster": func(w *world.World) func() {
			r := &networks.Request{Name: "mine", UID: "1", Config: config, Unserved: "topology"}
			world.Set(w, world.KindClusterNetwork, r)
			return func() { world.Del[networks.Request](w, world.KindClusterNetwork, r.Key()) }
		},
		"a definition that is not served": withDefinition(networks.Definition{Config: config}),
		"a definition that is refused":    withDefinition(networks.Definition{Config: config, Served: true, Problem: "bad"}),
		"a definition without a number":   withDefinition(networks.Definition{Config: config, Served: true}),
		"a definition that cannot be read": withDefinition(networks.Definition{
			Number: networks.Number{ID: 7, Name: name}}),
	} {
		t.Run(what, func(t *testing.T) {
			x := tellNetworked(t)
			x.says(name)
			x.leads()
			x.now = x.stays(name).Add(-time.Second)
			remove := put(x.w)
			x.now = x.now.Add(time.Hour)
			if again := x.stays(name); !again.IsZero() {
				t.Errorf("subnets of a network that an object names go at %v", again)
			}
			remove()
			x.now = x.stays(name)
			x.stays()
		})
	}
}

func withDefinition(d networks.Definition) func(*world.World) func() {
	return func(w *world.World) func() {
		d.Namespace, d.Name, d.UID = "shop", "mine", "1"
		world.Set(w, world.KindDefinition, &d)
		return func() { world.Del[networks.Definition](w, world.KindDefinition, d.Key()) }
	}
}

// TestLateNetwork: a leader that sees Nodes before the network that they have subnets of leaves each Node its subnets.
func TestLateNetwork(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		x := tellNetworked(t)
		x.says("of_green")
		x.w.SetNamespace(&world.Namespace{Name: "of-green", OwnNetwork: true})
		x.pod("p", "of-green", "a")
		x.leads()
		late := time.Duration(rapid.Int64Range(0, int64(5*time.Minute)).Draw(r, "late"))
		for _, pause := range rapid.SliceOfN(rapid.Int64Range(0, int64(late)), 0, 9).Draw(r, "decisions") {
			x.d.NoteChanged(world.Entry{Kind: world.KindNode, Key: "a"})
			x.stays("of_green")
			x.now = time.Unix(1000, 0).Add(max(x.now.Sub(time.Unix(1000, 0)), time.Duration(pause)))
		}
		x.now = time.Unix(1000, 0).Add(late)
		subnet := world.ClusterSubnet{CIDR: netip.MustParsePrefix("10.7.0.0/16"), NodeLen: 24}
		x.w.SetNetwork(&world.Network{Name: "of_green", ID: 3, Namespaces: []string{"of-green"},
			Subnets: []world.ClusterSubnet{subnet}})
		x.have("a of_green [10.7.0.0/24]")
	})
}
