package compile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// TestTwoNetworks: a second network with the default one's very subnets adds rows, and changes and shares none.
func TestTwoNetworks(t *testing.T) {
	for _, mode := range []world.GatewayMode{world.SharedGateway, world.LocalGateway} {
		w := compiletest.Small("n1", mode)
		a := compiletest.Attachment(compiletest.Pod(1, "n1"))
		w.SetAttachment(a)
		alone := compile.Full(w, all.Features())

		join(w, a)
		both := compile.Full(w, all.Features())
		unchanged(t, "nb", &alone.NB, &both.NB, func(x, y plan.Row) bool { return fmt.Sprint(x) == fmt.Sprint(y) })
		copied := "," + plan.Names{Network: "blue", ID: 1}.CopyTo()
		unchanged(t, "flow", &alone.Flows, &both.Flows,
			func(x, y string) bool { return x == strings.TrimSuffix(y, copied) })
		unchanged(t, "port", &alone.Ports, &both.Ports, func(x, y plan.PortSpec) bool { return x == y })
		unchanged(t, "address", &alone.Addrs, &both.Addrs, func(x, y plan.AddrSpec) bool { return x == y })
		unchanged(t, "route", &alone.Routes, &both.Routes, func(x, y plan.Route) bool { return x == y })

		// All that a network has of its own there is twice; what a node has once, once.
		for table, twice := range map[string]int{
			"Logical_Router": 2, "Logical_Switch": 4, "NAT": 6, "Load_Balancer_Group": 2, "Logical_Router_Port": 5,
		} {
			if have := count(alone, table); have != twice {
				t.Errorf("%s: %d rows of %s, want %d", mode, have, table, twice)
			}
			if have := count(both, table); have != 2*twice {
				t.Errorf("%s: %d rows of %s for two networks, want %d", mode, have, table, 2*twice)
			}
		}
		for port, sw := range map[string]string{"ns1_p1": "n1", "blue_ns1_p1": "blue_n1"} {
			row, ok := both.NB.Get(plan.RowID{Table: "Logical_Switch_Port", Name: port})
			if !ok || row.Parent != plan.Switch(sw) {
				t.Errorf("%s: port %s is on %v, want %s", mode, port, row.Parent, sw)
			}
		}
	}
}

// join puts all nodes, and a pod with the same addresses, into a network that overlaps the default one.
func join(w *world.World, a *world.Attachment) {
	c := w.Config
	w.SetNetwork(&world.Network{
		Name: "blue", ID: 1, Subnets: c.ClusterSubnets, Join: c.JoinSubnets, Transit: c.TransitSubnets,
	})
	for i := 1; i <= 3; i++ {
		n := compiletest.Node(i)
		n.Further = map[string]world.NodeNetwork{"blue": {Subnets: n.Subnets}}
		w.SetNode(n)
	}
	b := *a
	b.Further = []world.Interface{{Network: "blue", MAC: a.MAC, IPs: a.IPs}}
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
