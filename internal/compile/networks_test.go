package compile_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// TestTwoNetworks: a second network with the default one's very subnets adds rows, and changes and shares none. On the
// bridge and in the host's kernel it has none: what is there is once for all networks.
func TestTwoNetworks(t *testing.T) {
	for _, mode := range []world.GatewayMode{world.SharedGateway, world.LocalGateway} {
		w := compiletest.Small("n1", mode)
		a := compiletest.Attachment(compiletest.Pod(1, "n1"))
		w.SetAttachment(a)
		alone := compile.Full(w, all.Features())

		join(w, a, "blue")
		both := compile.Full(w, all.Features())
		isPartOf(t, alone, both)
		join(w, a, "blue", "red")
		three := compile.Full(w, all.Features())
		isPartOf(t, both, three)
		if has, want := onHost(three), onHost(both); has != want {
			t.Errorf("%s: a third network brings rows of bridge or host:\n%s\nnot\n%s", mode, has, want)
		}

		// A network has the routers and switches that the default one has, and a port of its cluster router.
		for table, more := range map[string]int{
			"Logical_Router": 2, "Logical_Switch": 4, "NAT": 6, "Load_Balancer_Group": 2, "Logical_Router_Port": 6,
		} {
			if have := count(three, table) - count(both, table); have != more {
				t.Errorf("%s: a network has %d rows of %s, want %d", mode, have, table, more)
			}
		}
		for port, sw := range map[string]string{"ns1_p1": "n1", "blue_ns1_p1": "blue_n1", "red_ns1_p1": "red_n1"} {
			row, ok := three.NB.Get(plan.RowID{Table: "Logical_Switch_Port", Name: port})
			if !ok || row.Parent != plan.Switch(sw) {
				t.Errorf("%s: port %s is on %v, want %s", mode, port, row.Parent, sw)
			}
		}
	}
}

func isPartOf(t *testing.T, less, more *plan.State) {
	t.Helper()
	unchanged(t, "nb", &less.NB, &more.NB, func(x, y plan.Row) bool {
		if len(x.Groups) == 0 { // a port that another network's pod has is closed by groups
			y.Groups = nil
		}
		return x.Equal(y)
	})
	unchanged(t, "flow", &less.Flows, &more.Flows, func(x, y string) bool { return x == y })
	unchanged(t, "port", &less.Ports, &more.Ports, func(x, y plan.PortSpec) bool { return x == y })
	unchanged(t, "address", &less.Addrs, &more.Addrs, func(x, y plan.AddrSpec) bool { return x == y })
	unchanged(t, "route", &less.Routes, &more.Routes, func(x, y plan.Route) bool { return x == y })
	unchanged(t, "rule", &less.NFTRules, &more.NFTRules, func(x, y string) bool { return x == y })
}

// onHost is how many rows there are outside of OVN.
func onHost(s *plan.State) string {
	return fmt.Sprintf("flows %d, ports %d, addresses %d, routes %d, rules %d, nftables %d",
		size(&s.Flows), size(&s.Ports), size(&s.Addrs), size(&s.Routes), size(&s.Rules), size(&s.NFTRules))
}

func size[K comparable, V any](t *plan.Table[K, V]) int { return len(maps.Collect(t.Rows())) }

// join puts all nodes, and a pod with the same addresses, into networks that overlap the default one.
func join(w *world.World, a *world.Attachment, names ...string) {
	c, further := w.Config, map[string]world.NodeNetwork{}
	b := *a
	for i, name := range names {
		w.SetNetwork(&world.Network{
			Name: name, ID: i + 1, Subnets: c.ClusterSubnets, Join: c.JoinSubnets, Transit: c.TransitSubnets,
		})
		b.Further = append(slices.Clip(b.Further), world.Interface{Network: name, MAC: a.MAC, IPs: a.IPs})
	}
	for i := 1; i <= 3; i++ {
		n := compiletest.Node(i)
		for _, name := range names {
			further[name] = world.NodeNetwork{Subnets: n.Subnets}
		}
		n.Further = maps.Clone(further)
		w.SetNode(n)
	}
	w.SetAttachment(&b)
}

func unchanged[K comparable, V any](t *testing.T, what string, alone, both *plan.Table[K, V], same func(x, y V) bool) {
	t.Helper()
	for k, v := range alone.Rows() {
		if now, ok := both.Get(k); !ok || !same(v, now) {
			t.Errorf("%s %v was %v, and with another network beside it is %v", what, k, v, now)
		}
	}
}

func count(s *plan.State, table string) int {
	n := 0
	for id := range s.NB.Rows() {
		if id.Table == table {
			n++
		}
	}
	return n
}

// TestNetworkWithoutSubnets: there is nothing to make of it, though nodes have a part of it.
func TestNetworkWithoutSubnets(t *testing.T) {
	w := compiletest.Small("n1", world.SharedGateway)
	alone := compile.Full(w, all.Features()).Text()
	w.SetNetwork(&world.Network{Name: "bare", ID: 1})
	n := compiletest.Node(1)
	n.Further = map[string]world.NodeNetwork{"bare": {Subnets: n.Subnets}}
	w.SetNode(n)
	if both := compile.Full(w, all.Features()).Text(); both != alone {
		t.Errorf("it has rows:\n%s", both)
	}
}
