package egressip_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// TestConnectionsStay: OVN deals connections out by the rank of a next hop, which is all that it keeps of them.
// Whichever nodes fall silent and return, and wherever their addresses go meanwhile: the connections that left by an
// address whose node is well and named as before leave by it still. The pod's own node is one of those that hold an
// address.
func TestConnectionsStay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := &slots{w: map[string]*world.World{}, at: map[netip.Addr]string{}, tunnels: map[string]world.Tunnel{}}
		for i := 1; i <= 4; i++ {
			s.add(fmt.Sprint("n", i))
		}
		f := world.Family(rapid.IntRange(0, 1).Draw(t, "family"))
		for i, node := range rapid.Permutation([]string{"n1", "n2", "n3"}).Draw(t, "holders") {
			s.ips = append(s.ips, compiletest.EgressAddr(i)[f])
			s.at[s.ips[i]] = node
		}
		s.tell()
		first := s.leave(t, f)
		for range rapid.IntRange(1, 5).Draw(t, "steps") {
			s.step(t)
			s.tell()
			s.stay(t, first, s.leave(t, f))
		}
	})
}

// slots is a pod on n1, an EgressIP with three addresses, and where those are.
type slots struct {
	w       map[string]*world.World
	ips     []netip.Addr
	at      map[netip.Addr]string
	moved   map[netip.Addr]bool
	tunnels map[string]world.Tunnel // of n1
}

func (s *slots) add(name string) {
	w := compiletest.Small(name, world.SharedGateway)
	w.SetNode(compiletest.Node(4))
	w.SetNamespace(&world.Namespace{Name: "ns0"})
	p := compiletest.Pod(0, "n1")
	w.SetPod(p)
	if name == "n1" {
		w.SetAttachment(compiletest.Attachment(p))
	}
	s.w[name] = w
}

// step is a node that falls silent or answers again, or an address that moves to a node without any.
func (s *slots) step(t *rapid.T) {
	if rapid.Bool().Draw(t, "tunnel changes") {
		s.tunnels[rapid.SampledFrom([]string{"n2", "n3", "n4"}).Draw(t, "node")] = world.Tunnel(rapid.IntRange(0,
			2).Draw(t, "tunnel"))
		return
	}
	if s.moved == nil {
		s.moved = map[netip.Addr]bool{}
	}
	ip := rapid.SampledFrom(s.ips).Draw(t, "address")
	for i := 1; i <= 4; i++ {
		if name := fmt.Sprint("n", i); !slices.Contains([]string{s.at[s.ips[0]], s.at[s.ips[1]], s.at[s.ips[2]]},
			name) {
			s.at[ip], s.moved[ip] = name, true
			return
		}
	}
}

// tell makes all of it known to all.
func (s *slots) tell() {
	e := compiletest.EgressIP(0, "", s.ips...)
	e.InForce = [2]bool{true, true}
	for _, ip := range s.ips {
		e.Items = append(e.Items, world.Assignment{Node: s.at[ip], IP: ip})
	}
	for _, w := range s.w {
		w.SetEgressIP(e)
		for i := 1; i <= 4; i++ {
			name := fmt.Sprint("n", i)
			h := &world.Holding{Node: name, BootID: "boot-" + name, Holds: map[string][]netip.Addr{}}
			for _, ip := range s.ips {
				if s.at[ip] == name {
					h.Holds["e0"] = append(h.Holds["e0"], ip)
				}
			}
			w.SetHolding(h)
		}
	}
	for node, state := range s.tunnels {
		s.w["n1"].SetTunnel(node, state)
	}
}

// leave is what connections leave by, by the rank of the next hop that OVN has chosen for them.
func (s *slots) leave(t *rapid.T, f world.Family) []netip.Addr {
	net := trace.Network{}
	for name, w := range s.w {
		net[name] = compile.Full(w, all.Features())
	}
	id := plan.RowID{Table: "Logical_Router_Policy", Name: "egressip/e0/" + f.String()}
	row, _ := net["n1"].NB.Get(id)
	var out []netip.Addr
	for _, hop := range row.Cols["nexthops"].([]string) {
		cols := plan.Cols{}
		for k, v := range row.Cols {
			cols[k] = v
		}
		cols["nexthops"] = []string{hop}
		owner := net["n1"].NB.Owner(id)
		net["n1"].NB.Put(owner, id, plan.Row{Parent: row.Parent, Cols: cols})
		walks, err := trace.Read(net)
		if err != nil {
			t.Fatal(err)
		}
		ends := walks.Walk(trace.Packet{Src: compiletest.Pod(0, "n1").IPs[f], Dst: compiletest.EgressAddr(50)[f],
			Proto: "tcp", DstPort: 80})
		if len(ends) != 1 || ends[0].Kind != trace.Outside {
			t.Fatalf("by next hop %s: %v", hop, ends)
		}
		out = append(out, ends[0].Src)
	}
	return out
}

// stay compares; all nodes may be silent, and then everything is as if none were.
func (s *slots) stay(t *rapid.T, first, now []netip.Addr) {
	if len(now) != len(first) {
		t.Fatalf("connections leave by %v, and did by %v", now, first)
	}
	for rank, ip := range first {
		if !s.moved[ip] && s.tunnels[s.at[ip]] != world.TunnelDown && now[rank] != ip {
			t.Fatalf("connections of rank %d leave by %s, and did by %s, whose node %s is well", rank, now[rank], ip,
				s.at[ip])
		}
	}
}

// TestSlotsAreForAllAddresses: of any number of addresses, on any nodes, one whose node falls silent takes its own
// slot's connections along and no others, and the routers of the pod's node know each next hop: it is on the link of a
// port, and bound to its node's hardware address.
func TestSlotsAreForAllAddresses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, world.MaxSlots).Draw(t, "addresses")
		f := world.Family(rapid.IntRange(0, 1).Draw(t, "family"))
		w := manyAddresses(n, rapid.IntRange(1, 2).Draw(t, "first node"), f)
		before := routers(t, w, f)
		lost := rapid.SampledFrom(w.EgressIP("e0").Items).Draw(t, "lost").Node
		w.SetTunnel(lost, world.TunnelDown)
		after := routers(t, w, f)
		if len(before) != n || len(after) != n {
			t.Fatalf("%d addresses have %d next hops, and then %d", n, len(before), len(after))
		}
		for rank, node := range before {
			if node != lost && after[rank] != node || after[rank] == lost && lost != "n1" {
				t.Fatalf("%s is lost: connections of rank %d went to %s, and go to %s", lost, rank, node, after[rank])
			}
		}
	})
}

// manyAddresses is n1 with a pod, and an EgressIP of n addresses on as many nodes from n<first> on, which hold them.
func manyAddresses(n, first int, f world.Family) *world.World {
	w := compiletest.Small("n1", world.SharedGateway)
	p := compiletest.Pod(0, "n1")
	w.SetNamespace(&world.Namespace{Name: p.Namespace})
	w.SetPod(p)
	w.SetAttachment(compiletest.Attachment(p))
	e := compiletest.EgressIP(0, "")
	e.InForce = [2]bool{true, true}
	for i := range n {
		node, ip := compiletest.Node(first+i), compiletest.EgressAddr(50 + i)[f]
		w.SetNode(node)
		e.IPs, e.Items = append(e.IPs, ip), append(e.Items, world.Assignment{Node: node.Name, IP: ip})
		w.SetHolding(&world.Holding{Node: node.Name, BootID: node.BootID, Holds: map[string][]netip.Addr{e.Name: {ip}}})
	}
	w.SetEgressIP(e)
	return w
}

// routers are the nodes that n1 steers to, by the rank of the next hop.
func routers(t rapid.TB, w *world.World, f world.Family) (nodes []string) {
	s := compile.Full(w, all.Features())
	policy, _ := s.NB.Get(plan.RowID{Table: "Logical_Router_Policy", Name: "egressip/e0/" + f.String()})
	macs := map[string]string{}
	for _, name := range w.Nodes() {
		macs[w.Config.TransitMAC(w.Node(name).ID)] = name
	}
	macs[w.Config.JoinMAC(w.Node("n1").ID)] = "n1"
	for _, hop := range policy.Cols["nexthops"].([]string) {
		for _, port := range []string{"rtots-n1", "rtoj-ovn_cluster_router"} {
			row, _ := s.NB.Get(plan.RowID{Table: "Logical_Router_Port", Name: port})
			onLink := slices.ContainsFunc(row.Cols["networks"].([]string), func(n string) bool {
				return netip.MustParsePrefix(n).Contains(netip.MustParseAddr(hop))
			})
			binding, bound := s.NB.Get(plan.RowID{Table: "Static_MAC_Binding", Name: port + "/" + hop})
			if onLink != bound {
				t.Fatalf("next hop %s: on the link of %s: %v; bound there: %v", hop, port, onLink, bound)
			}
			if bound {
				nodes = append(nodes, macs[binding.Cols["mac"].(string)])
			}
		}
	}
	return nodes
}

// TestSlotsComeAndGo: routers have addresses in as many slots as the EgressIP with the most addresses needs.
func TestSlotsComeAndGo(t *testing.T) {
	w := manyAddresses(9, 2, world.V4)
	nine := *w.EgressIP("e0")
	eight := nine
	eight.IPs = nine.IPs[:8]
	m := compile.NewMemo(all.Features())
	m.Update(w)
	for i, step := range []struct {
		change func()
		nine   bool
	}{
		{func() {}, true},
		{func() { w.SetEgressIP(&eight) }, false},
		{func() { w.SetEgressIP(&nine) }, true},
		{func() { w.DelEgressIP("e0") }, false},
	} {
		step.change()
		m.Update(w)
		row, _ := m.State.NB.Get(plan.RowID{Table: "Logical_Router_Port", Name: "rtots-n1"})
		if has := slices.Contains(row.Cols["networks"].([]string), "254.100.0.2/16"); has != step.nine {
			t.Errorf("step %d: the ninth slot is there: %v", i, has)
		}
	}
}

// TestSlotsOfTheStatus: until the controller has decided about a spec of fewer addresses, none of them former ones,
// pods are steered by those of the status, over next hops that the routers still have a link to: northd makes no flow
// of a policy where one is not.
func TestSlotsOfTheStatus(t *testing.T) {
	w := manyAddresses(12, 2, world.V4)
	before := routers(t, w, world.V4)
	others := *w.EgressIP("e0")
	others.IPs = []netip.Addr{compiletest.EgressAddr(0)[world.V4]}
	m := compile.NewMemo(all.Features())
	m.Update(w)
	w.SetEgressIP(&others)
	m.Update(w)
	if after := routers(t, w, world.V4); !slices.Equal(after, before) {
		t.Errorf("connections go to %v, and went to %v", after, before)
	}
	if full := compile.Full(w, all.Features()); plan.DiffText(m.State, full) != "" {
		t.Errorf("the change is not followed:\n%s", plan.DiffText(m.State, full))
	}
}

// TestSlotsOfANetwork: routers of a network of users have slots only while an EgressIP of several addresses selects a
// namespace of the network. Its pods leave with an egress IP at each step, and the memo follows.
func TestSlotsOfANetwork(t *testing.T) {
	worlds := twoNetworks(world.SharedGateway, true, world.FirstMark)
	one := *worlds["n1"].EgressIP("e0")
	two := one
	for _, ip := range compiletest.EgressAddr(3) {
		two.IPs, two.Items = append(slices.Clip(two.IPs), ip), append(slices.Clip(two.Items),
			world.Assignment{Node: "n2", IP: ip})
	}
	elsewhere := two
	elsewhere.Namespaces = labels.SelectorFromSet(labels.Set{"network": ""})
	memos, net := map[string]*compile.Memo{}, trace.Network{}
	for name := range worlds {
		memos[name] = compile.NewMemo(all.Features())
	}
	for i, x := range []struct {
		change func(w *world.World)
		slots  int
		ends   string
	}{
		{func(*world.World) {}, 0, "outside by n2"},
		{func(w *world.World) { w.SetEgressIP(&two) }, 2, "outside by n2"},
		{func(w *world.World) { w.SetEgressIP(&one) }, 0, "outside by n2"},
		{func(w *world.World) { w.SetEgressIP(&two) }, 2, "outside by n2"},
		{func(w *world.World) { w.SetEgressIP(&elsewhere) }, 0, "outside by n1"},
		{func(w *world.World) {
			w.SetNamespace(&world.Namespace{Name: "ns2", Labels: map[string]string{"network": ""}, OwnNetwork: true})
		}, 2, "outside by n2"},
		{func(w *world.World) { w.DelEgressIP("e0") }, 0, "outside by n1"},
	} {
		for name, w := range worlds {
			x.change(w)
			w.SetHolding(&world.Holding{Node: "n2", BootID: "boot-n2", Holds: map[string][]netip.Addr{"e0": two.IPs}})
			memos[name].Update(w)
			if net[name] = memos[name].State; plan.DiffText(net[name], compile.Full(w, all.Features())) != "" {
				t.Errorf("step %d: %s does not follow", i, name)
			}
		}
		for _, port := range []string{names("blue").RouterToTransit("n1"), names("blue").RouterToJoin()} {
			if have := slotsOf(net["n1"], port); have != x.slots {
				t.Errorf("step %d: %s has %d slots, want %d", i, port, have, x.slots)
			}
		}
		plans, err := trace.Read(net)
		if err != nil {
			t.Fatal(err)
		}
		for _, end := range walkBy(plans, world.Interface{Network: "blue", IPs: compiletest.PodIPs(0, 1)}) {
			if !strings.HasPrefix(end.String(), x.ends) {
				t.Errorf("step %d: %s\n%v", i, end, end.Steps)
			}
		}
	}
}

// slotsOf returns in how many slots a router port has an address of each family.
func slotsOf(s *plan.State, port string) (n int) {
	row, ok := s.NB.Get(plan.RowID{Table: "Logical_Router_Port", Name: port})
	if !ok {
		return -1
	}
	for _, network := range row.Cols["networks"].([]string) {
		if strings.HasPrefix(network, "100.9") || strings.HasPrefix(network, "100.10") {
			n++
		}
	}
	return n
}
