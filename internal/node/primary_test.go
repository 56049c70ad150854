package node

import (
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/networks"
	"github.com/egret-net/egret/internal/node/cniserver"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// blueParts are what must be there before n1 attaches a pod of namespace shop to its network, in steps.
func blueParts() []func(*world.World) {
	define := func(namespace, name, network string, number int) func(*world.World) {
		d := &networks.Definition{Namespace: namespace, Name: name, UID: namespace + name, Served: true,
			Config: networks.Config{Name: network, Subnets: []world.ClusterSubnet{
				{CIDR: netip.MustParsePrefix("10.128.0.0/16"), NodeLen: 24},
				{CIDR: netip.MustParsePrefix("fd00:128::/48"), NodeLen: 64}}}}
		if number > 0 {
			d.Number = networks.Number{Name: network, ID: number}
		}
		return func(w *world.World) { world.Set(w, world.KindDefinition, d) }
	}
	return []func(*world.World){
		func(w *world.World) { w.SetNamespace(&world.Namespace{Name: "shop", OwnNetwork: true}) },
		define("other", "blue", "shop_blue", 7),
		define("shop", "a", "shop_blue", 0),
		define("shop", "b", "shop_red", 9),
		define("shop", "blue", "shop_blue", 7),
		func(w *world.World) { w.SetNode(inBlue("10.128.1.0/24")) }, // one family is not all of it
		func(w *world.World) { w.SetNode(inBlue("10.128.1.0/24", "fd00:128:0:1::/64")) },
	}
}

func inBlue(subnets ...string) *world.Node {
	n, part := compiletest.Node(1), world.NodeNetwork{}
	for _, s := range subnets {
		part.Subnets = append(part.Subnets, netip.MustParsePrefix(s))
	}
	n.Further = map[string]world.NodeNetwork{"shop_blue": part}
	return n
}

// TestNetworkHere: a namespace's own network is there for pods of this node once the node has a subnet of each of its
// families and the namespace has a definition of it that counts. Its MTU is the network's, else the node's.
func TestNetworkHere(t *testing.T) {
	a := newAgent("n1", compiletest.Config(world.SharedGateway), all.ServedKinds(), slog.New(slog.DiscardHandler))
	a.podMTU.Store(1400)
	w, parts := a.loop.world, blueParts()
	for i, step := range parts {
		if have := a.networkHere(w, "shop", ownNetwork(w, "shop")); have != nil {
			t.Errorf("after %d of %d parts: %+v", i, len(parts), have)
		}
		step(w)
	}
	want := &cniserver.PrimaryNetwork{Names: plan.Names{Network: "shop_blue", ID: 7}, Definition: "shop/blue",
		MTU: 1400, Subnets: inBlue("10.128.1.0/24", "fd00:128:0:1::/64").In("shop_blue").Subnets}
	have := a.networkHere(w, "shop", ownNetwork(w, "shop"))
	if diff := cmp.Diff(want, have, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("(-want +have):\n%s", diff)
	}
	wide := *w.Network("shop_blue")
	wide.MTU = 8900
	w.SetNetwork(&wide)
	if have := a.networkHere(w, "shop", "shop_blue"); have == nil || have.MTU != 8900 {
		t.Errorf("with an MTU of its own: %+v", have)
	}
}

// TestPrimaryNetworkWaits: ADD waits for the node's subnets of a network, and after some time says what is missing.
func TestPrimaryNetworkWaits(t *testing.T) {
	a, _ := startLateAgent(t, &lateServer{version: 5})
	parts := blueParts()
	last := parts[len(parts)-1]
	for _, step := range parts[:len(parts)-1] {
		a.loop.Do(step)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := a.PrimaryNetwork(t.Context(), "other")
		answered <- err
	}()
	if n, err := a.PrimaryNetwork(t.Context(), "shop"); err == nil ||
		!strings.Contains(err.Error(), "namespace shop: this node has no subnet of its network yet") {
		t.Errorf("with a subnet of one family: %+v, %v", n, err)
	}
	if err := <-answered; err == nil {
		t.Error("a namespace that asks for no network of its own has one")
	}
	go func() {
		n, err := a.PrimaryNetwork(t.Context(), "shop")
		if err == nil && n.Definition != "shop/blue" {
			t.Errorf("have %+v", n)
		}
		answered <- err
	}()
	a.loop.Do(last)
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if have, err := a.FurtherNetworks(t.Context()); err != nil || !cmp.Equal(have, []string{"shop_blue"}) {
		t.Errorf("this node has subnets of %q: %v", have, err)
	}
}

// TestWhyMisplaced: an attachment has an interface in its namespace's own network, and no other. A namespace that asks
// for its own network is not in the default one before it has that.
func TestWhyMisplaced(t *testing.T) {
	config := compiletest.Config(world.SharedGateway)
	w := newAgent("n1", config, all.ServedKinds(), slog.New(slog.DiscardHandler)).loop.world
	of := func(namespace string, further ...string) *world.Attachment {
		at := &world.Attachment{Namespace: namespace, Name: "p"}
		for _, name := range further {
			at.Further = append(at.Further, world.Interface{Network: name})
		}
		return at
	}
	w.SetNamespace(&world.Namespace{Name: "plain"})
	w.SetNamespace(&world.Namespace{Name: "waiting", OwnNetwork: true})
	for _, step := range blueParts() {
		step(w)
	}
	for _, x := range []struct {
		at   *world.Attachment
		want string
	}{
		{of("plain"), ""},
		{of("plain", "shop_blue"), `has just changed ("shop_blue", now "")`},
		{of("waiting", "shop_blue"), `has just changed ("shop_blue", now "")`},
		{of("shop"), `network of namespace shop has just changed ("", now "shop_blue")`},
		{of("shop", "shop_blue"), ""},
		{of("shop", "shop_red"), `has just changed ("shop_red", now "shop_blue")`},
	} {
		if have := whyMisplaced(w, x.at); (have == "") != (x.want == "") || !strings.Contains(have, x.want) {
			t.Errorf("namespace %s, %v: %q, want %q", x.at.Namespace, x.at.Further, have, x.want)
		}
	}
}
