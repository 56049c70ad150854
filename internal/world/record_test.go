package world_test

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/world"
)

// TestRecordOutlivesPrograms: what is recorded of a node is not an older one's by being listed first, when a program
// starts, nor by being claimed first.
func TestRecordOutlivesPrograms(t *testing.T) {
	for name, lie := range lies {
		if name == "id" || name == "subnets" {
			continue // the controller alone writes these
		}
		older := compiletest.Recorded(3)
		lie(older, compiletest.Node(1))
		w := world.New("n2", compiletest.Config(world.SharedGateway))
		for _, n := range []*world.Node{older, compiletest.Recorded(1), compiletest.Recorded(2)} {
			w.SetNode(n)
		}
		n1, n3 := w.Node("n1"), w.Node("n3")
		mine := slices.DeleteFunc(slices.Clone(n3.HostAddrs),
			func(a netip.Addr) bool { return !slices.Contains(compiletest.Recorded(1).Record.Addrs, a) })
		if !slices.Equal(n1.Primary, compiletest.Recorded(1).Primary) ||
			n1.UplinkMAC != compiletest.Recorded(1).UplinkMAC || len(mine) > 0 {
			t.Errorf("%s: n1 is %+v, n3 %+v", name, n1, n3)
		}
		if overlap(n3.Primary, n1.Primary) || n3.UplinkMAC == n1.UplinkMAC {
			t.Errorf("%s: n3 is believed: %+v", name, n3)
		}
	}
}

// TestRecordDecidesWhenItComes: a record that is written decides at once between nodes that were known before it.
func TestRecordDecidesWhenItComes(t *testing.T) {
	w := world.New("n2", compiletest.Config(world.SharedGateway))
	w.SetNode(liar(lies["primary"]))
	w.SetNode(compiletest.Node(1))
	if have := w.Node("n1").Primary; len(have) != 0 {
		t.Fatalf("n1 has %v, that n3 had first", have)
	}
	changed := w.ChangesOf(func() { w.SetNode(compiletest.Recorded(1)) })
	if !slices.Equal(w.Node("n1").Primary, compiletest.Node(1).Primary) || len(w.Node("n3").Primary) != 0 {
		t.Errorf("n1 has %v, n3 %v", w.Node("n1").Primary, w.Node("n3").Primary)
	}
	if !slices.Contains(changed, world.Entry{Kind: world.KindNode, Key: "n3"}) {
		t.Error("n3 is not touched, that lost its address")
	}
}

// TestAddressesAreSwapped: a record decides between nodes that claim an address, and gives none to a node that does
// not.
func TestAddressesAreSwapped(t *testing.T) {
	w := world.New("n2", compiletest.Config(world.SharedGateway))
	n1, n3 := compiletest.Recorded(1), compiletest.Recorded(3)
	w.SetNode(n1)
	w.SetNode(n3)
	swap := func(n, as *world.Node) *world.Node {
		c := *n
		c.Primary, c.HostAddrs = as.Primary, as.HostAddrs
		return &c
	}
	w.SetNode(swap(n1, n3))
	if have := w.Node("n1").Primary; len(have) != 0 {
		t.Errorf("n1 has n3's %v", have)
	}
	w.SetNode(swap(n3, n1))
	if !slices.Equal(w.Node("n1").Primary, n3.Primary) || !slices.Equal(w.Node("n3").Primary, n1.Primary) {
		t.Errorf("n1 has %v, n3 %v", w.Node("n1").Primary, w.Node("n3").Primary)
	}
}

// TestPrimaryBeforeOthers: no node keeps another one out of the cluster by listing its address among those of its links
// before it joins.
func TestPrimaryBeforeOthers(t *testing.T) {
	w := world.New("n2", compiletest.Config(world.SharedGateway))
	w.SetNode(liar(func(n3, n1 *world.Node) { n3.HostAddrs = n1.HostAddrs }))
	w.SetNode(compiletest.Node(1))
	if n1 := w.Node("n1"); !slices.Equal(n1.Primary, compiletest.Node(1).Primary) {
		t.Errorf("n1 is %+v", n1)
	}
}

// TestReinstalledMachine: the words for a machine that joined again under another name say what to do with the Node of
// before.
func TestReinstalledMachine(t *testing.T) {
	w := world.New("", compiletest.Config(world.SharedGateway))
	w.SetNode(compiletest.Recorded(1))
	again := liar(func(n3, n1 *world.Node) { n3.Primary, n3.UplinkMAC = n1.Primary, n1.UplinkMAC })
	w.SetNode(again)
	if said := w.Node("n3").Problems; len(said) != 3 || strings.Count(fmt.Sprint(said),
		"is also node n1's: delete Node n1 if it is gone") != 3 {
		t.Errorf("problems %q", said)
	}
	w.DelNode("n1")
	if !reflect.DeepEqual(w.Node("n3"), again) {
		t.Errorf("n1 is gone, and n3 is %+v", w.Node("n3"))
	}
}

// TestPlacedIsNoPrimary: an egress IP that has a node, or once had one, is not made another node's by its claim, in
// whatever order both come to be known; what is recorded of it is, of a node of which nothing is recorded everything,
// and what the EgressIP gives up.
func TestPlacedIsNoPrimary(t *testing.T) {
	ip := compiletest.EgressAddr(0)[0]
	has, had := compiletest.EgressIP(0, "", ip), compiletest.EgressIP(0, "", ip)
	has.Items = []world.Assignment{{Node: "n2", IP: ip}}
	had.Granted = []netip.Addr{ip}
	for _, e := range []*world.EgressIP{has, had} {
		placedIsNoPrimary(t, e, ip)
	}
}

func placedIsNoPrimary(t *testing.T, e *world.EgressIP, ip netip.Addr) {
	claims := compiletest.Node(3)
	claims.Primary = []netip.Prefix{netip.PrefixFrom(ip, 24)}
	claims.Record.Addrs = []netip.Addr{compiletest.Primary(3)}
	for _, first := range []bool{true, false} {
		w := compiletest.Small("n1", world.SharedGateway)
		changed := w.ChangesOf(func() {
			if first {
				w.SetEgressIP(e)
			}
			w.SetNode(claims)
			w.SetEgressIP(e)
		})
		n := w.Node("n3")
		if len(n.Primary) != 0 || !strings.Contains(fmt.Sprint(n.Problems), "is an address of an EgressIP") ||
			len(w.NodesAt(ip)) != 0 {
			t.Errorf("it is believed: %+v", n)
		}
		if !slices.Contains(changed, world.Entry{Kind: world.KindNode, Key: "n3"}) {
			t.Errorf("n3 is not noted as changed: %v", changed)
		}
		for what, record := range map[string][]netip.Addr{"what is recorded of it": {ip}, "a new node": nil} {
			had := *claims
			had.Record.Addrs = record
			if w.SetNode(&had); !slices.Equal(w.Node("n3").Primary, had.Primary) {
				t.Errorf("%s is not believed", what)
			}
		}
		w.SetNode(claims)
		if w.DelEgressIP("e0"); !slices.Equal(w.Node("n3").Primary, claims.Primary) {
			t.Error("what no EgressIP has is not believed")
		}
	}
}

// TestOnlyTheRecordTakesFromServices: an address counts as a node's against Services where it is recorded, or where
// nothing is recorded of the node yet.
func TestOnlyTheRecordTakesFromServices(t *testing.T) {
	x, own := netip.MustParseAddr("172.18.0.200"), compiletest.Primary(3)
	for name, c := range map[string]struct {
		record, primary netip.Addr
		want            bool
	}{
		"no record":        {netip.Addr{}, x, true},
		"recorded":         {x, x, true},
		"another recorded": {own, x, false},
	} {
		w := compiletest.Small("n1", world.SharedGateway)
		n := compiletest.Node(3)
		n.Primary = []netip.Prefix{netip.PrefixFrom(c.primary, 24)}
		if c.record.IsValid() {
			n.Record.Addrs = []netip.Addr{c.record}
		}
		w.SetNode(n)
		if have := slices.Contains(w.NodesAt(x), "n3"); have != c.want {
			t.Errorf("%s: counts %v, want %v", name, have, c.want)
		}
		accepted := *n
		accepted.Record.Addrs = []netip.Addr{x}
		touched := w.ChangesOf(func() { w.SetNode(&accepted) })
		if !slices.Contains(w.NodesAt(x), "n3") || !c.want &&
			!slices.Contains(touched, world.Entry{Kind: world.KindNodeAddress, Key: x.String()}) {
			t.Errorf("%s: recorded now, it does not count: %v", name, touched)
		}
	}
}

// For any nodes that claim what they like of each other's: whoever is recorded with what it claims has it, in whatever
// order a program learns of them, and however often.
func TestRecordProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var nodes []*world.Node
		which := rapid.IntRange(1, 4)
		for i := 1; i <= 4; i++ {
			n := compiletest.Recorded(i)
			n.Primary = slices.Clone(n.Primary)
			for f := range n.Primary {
				n.Primary[f] = compiletest.Node(which.Draw(t, "primary")).Primary[f]
			}
			n.HostAddrs = compiletest.Node(which.Draw(t, "host")).HostAddrs
			n.UplinkMAC = compiletest.Node(which.Draw(t, "mac")).UplinkMAC
			nodes = append(nodes, n)
		}
		w := world.New("", compiletest.Config(world.SharedGateway))
		for _, n := range rapid.Permutation(append(slices.Clone(nodes), nodes...)).Draw(t, "order") {
			w.SetNode(n)
		}
		taken := map[string]string{}
		for i, said := range nodes {
			n := w.Node(said.Name)
			has := []string{n.UplinkMAC.String()}
			for f, p := range said.Primary {
				if p == compiletest.Node(i + 1).Primary[f] && !slices.Contains(n.Primary, p) {
					t.Fatalf("%s is recorded with %s and does not have it: %+v", n.Name, p, n)
				}
				if slices.Contains(n.Primary, p) {
					has = append(has, p.String())
				}
			}
			if said.UplinkMAC == said.Record.MAC && n.UplinkMAC != said.UplinkMAC {
				t.Fatalf("%s is recorded with %s and does not have it: %+v", n.Name, said.UplinkMAC, n)
			}
			for _, a := range has {
				if other := taken[a]; a != "" && other != "" {
					t.Fatal(fmt.Sprint(a, " is both ", n.Name, "'s and ", other, "'s"))
				}
				taken[a] = n.Name
			}
		}
	})
}
