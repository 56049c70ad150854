package egressservice_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// TestNoWrongSource: an EgressIP in force selects all pods, and over it an EgressService comes and goes, moves, loses
// its host, changes its addresses, its routing table and what its source is by, and its Service comes, goes, and
// changes its endpoints. Nodes learn of everything late; each applies its plan row by row, and says what it holds only
// once it does. After every single row, on any node, every pod's packet leaves with an address of the two, or by the
// routing table, or is dropped.
func TestNoWrongSource(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(t)
		for range rapid.IntRange(5, 80).Draw(t, "steps") {
			s.step(t)
			s.check(t)
		}
	})
}

// TestServedInTheEnd: whatever has happened, once all nodes know of all, endpoints leave with the Service's addresses,
// and others with the EgressIP's; without the EgressService nothing of it is left.
func TestServedInTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(t)
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			s.step(t)
		}
		s.hosted(rapid.SampledFrom(names).Draw(t, "host in the end"), false)
		s.balances(true, true, false)
		s.settle(t)
		s.leaves(t, s.ips, s.ips, egressIPs)
		s.happens(func(w *world.World) { w.DelEgressService(key) })
		s.settle(t)
		s.leaves(t, egressIPs, egressIPs, egressIPs)
		s.nothingLeft(t)
	})
}

// TestFromHostToNetwork: where a host by a routing table becomes one of all, after each of its rows no pod that other
// nodes lead there still leaves with its own address.
func TestFromHostToNetwork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(t)
		s.hosted("n2", true)
		s.settle(t)
		s.byNetwork()
		n := s.nodes["n2"]
		n.learn(s, len(s.history))
		n.begin(t)
		for len(n.todo) > 0 {
			n.apply(1)
			s.check(t)
		}
	})
}

// TestAnotherAddressOnTheSameHost: when the Service gets other addresses and its host stays, pods' packets leave with
// the former or the new ones all the time, whoever learns of it first and in whatever order rows are written; nothing
// leads them away from the host meanwhile.
func TestAnotherAddressOnTheSameHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(t)
		s.ips = second
		s.balances(true, true, true)
		s.hosted("n2", false)
		s.letGo() // the controller lists no node as leaving that has another address
		for _, name := range rapid.Permutation(names).Draw(t, "who learns of it first") {
			n := s.nodes[name]
			n.learn(s, len(s.history))
			n.begin(t)
			for len(n.todo) > 0 {
				n.apply(1)
				for _, p := range s.pods {
					for _, end := range walk(s.plans(t), p) {
						if end.Kind != trace.Outside || !slices.Contains(slices.Concat(first, second), end.Src) {
							t.Fatalf("pod %s on %s: %s\n%v", p.Key(), p.Node, end, end.Steps)
						}
					}
				}
			}
		}
		s.settle(t)
		s.leaves(t, second, second, second)
	})
}

const key = "ns0/s0"

var (
	names     = []string{"n1", "n2", "n3"}
	egressIPs = compiletest.EgressAddr(0)
	first     = compiletest.EgressAddr(20)
	second    = compiletest.EgressAddr(21)
)

// simulation is three nodes that learn of one history of objects, each at its own pace.
type simulation struct {
	nodes   map[string]*agent
	history []func(*world.World)
	pods    []*world.Pod // one a node
	reader  *trace.Reader
	s       world.EgressService // as it was last written
	ips     []netip.Addr        // the Service's
}

type agent struct {
	world *world.World
	seen  int         // of the history
	have  *plan.State // what its targets hold
	todo  []func()    // row by row, what is left of the round under way
	holds map[string][]netip.Addr
}

func newSimulation(t *rapid.T) *simulation {
	mode := rapid.SampledFrom([]world.GatewayMode{world.SharedGateway, world.LocalGateway}).Draw(t, "gateway mode")
	s := &simulation{nodes: map[string]*agent{}, reader: trace.NewReader(), ips: first}
	links := rapid.Bool().Draw(t, "links beside the primary network")
	for i, name := range names {
		n := &agent{world: compiletest.Small(name, mode), have: plan.New()}
		h := *compiletest.Host(name)
		if !links {
			h.Links = nil
		}
		if name != "n3" {
			h.Tables = []world.HostTable{{ID: 100, Default: [2]bool{true, true}, Names: []string{"blue"}}}
		}
		n.world.SetHost(&h)
		s.nodes[name] = n
		p := compiletest.Pod(3*i, name)
		s.pods = append(s.pods, p)
		n.world.SetPod(p)
		n.world.SetAttachment(compiletest.Attachment(p))
		s.happens(func(w *world.World) { w.SetPod(p) })
	}
	e := compiletest.EgressIP(0, "", egressIPs...)
	e.Items = []world.Assignment{{Node: "n1", IP: egressIPs[0]}, {Node: "n1", IP: egressIPs[1]}}
	e.InForce = [2]bool{true, true}
	s.happens(func(w *world.World) { w.SetNamespace(&world.Namespace{Name: "ns0"}); w.SetEgressIP(e) })
	s.balances(true, true, true)
	s.hosted("n2", rapid.Bool().Draw(t, "by a table first"))
	s.settle(t)
	return s
}

func (s *simulation) happens(f func(*world.World)) { s.history = append(s.history, f) }

// settle has all nodes know of all, and of what the others say then.
func (s *simulation) settle(t *rapid.T) {
	for range 4 {
		for _, name := range names {
			n := s.nodes[name]
			n.apply(len(n.todo))
			n.learn(s, len(s.history))
			n.begin(t)
			n.apply(len(n.todo))
			n.tell(s, name)
		}
	}
}

func (s *simulation) step(t *rapid.T) {
	name := rapid.SampledFrom(names).Draw(t, "node")
	n := s.nodes[name]
	switch rapid.IntRange(0, 12).Draw(t, "what") {
	case 0:
		s.hosted(name, rapid.Bool().Draw(t, "by the table"))
	case 1:
		s.letGo()
	case 2:
		s.ips = rapid.SampledFrom([][]netip.Addr{first, second}).Draw(t, "addresses")
		s.hosted(s.s.Host, false)
	case 3:
		s.byNetwork()
	case 4:
		s.happens(func(w *world.World) { w.DelEgressService(key) })
	case 5:
		b := rapid.Bool()
		s.balances(b.Draw(t, "first"), b.Draw(t, "second"), b.Draw(t, "third"))
	case 6, 7:
		n.learn(s, rapid.IntRange(1, 10).Draw(t, "news"))
	case 8:
		n.begin(t)
	case 9, 10:
		n.apply(rapid.IntRange(1, 6).Draw(t, "rows"))
	case 11:
		n.tell(s, name)
	case 12:
		s.loses()
	}
}

// hosted is the controller, which gives the addresses to a host; the former one is leaving.
func (s *simulation) hosted(host string, table bool) {
	former := s.s
	s.s = *compiletest.EgressService(0)
	if s.s.Host = host; host == world.HostAll || host == "" {
		s.s.Host = "n1"
	}
	if table {
		s.s.Table = world.RoutingTable{Name: "blue"}
	}
	for _, ip := range s.ips {
		s.s.Items = append(s.s.Items, world.Assignment{Node: s.s.Host, IP: ip})
	}
	for _, a := range former.Items {
		if !s.s.Names(a.Node, a.IP) {
			s.s.Leaving = append(s.s.Leaving, world.Leaving{Node: a.Node, IP: a.IP})
		}
	}
	s.s.InForce = [2]bool{true, true}
	s.wrote()
}

// loses is a controller that chooses no host after the one that it had, and does not give the EgressService up.
func (s *simulation) loses() {
	s.s.Host, s.s.Items, s.s.Leaving = "", nil, nil
	s.wrote()
}

func (s *simulation) letGo() {
	s.s.Leaving = nil
	s.wrote()
}

// byNetwork changes what the source is by; the nodes that held addresses are none any more.
func (s *simulation) byNetwork() {
	s.s = *compiletest.EgressService(0)
	s.s.SourceIPBy, s.s.Host, s.s.Table = world.SourceNetwork, world.HostAll, world.RoutingTable{Number: 100}
	s.wrote()
}

func (s *simulation) wrote() {
	now := s.s
	if now.Name != "" {
		s.happens(func(w *world.World) { w.SetEgressService(&now) })
	}
}

// balances is the Service, with some of the pods as endpoints; with none it is gone.
func (s *simulation) balances(which ...bool) {
	var endpoints []*world.Pod
	for i, is := range which {
		if is {
			endpoints = append(endpoints, s.pods[i])
		}
	}
	service := compiletest.LoadBalancer(0, endpoints...)
	service.LoadBalancerIPs = s.ips
	s.happens(func(w *world.World) {
		if len(endpoints) == 0 {
			w.DelService(key)
		} else {
			w.SetService(service)
		}
	})
}

func (n *agent) learn(s *simulation, news int) {
	for ; news > 0 && n.seen < len(s.history); news-- {
		s.history[n.seen](n.world)
		n.seen++
	}
}

// begin starts a round, as the agent's: what grows, the Northbound's rows in any order, and what shrinks.
func (n *agent) begin(t *rapid.T) {
	n.apply(len(n.todo)) // a round ends before the next
	want := compile.Full(n.world, all.Features())
	grow, shrink := compiletest.FlowSteps(n.have, want)
	growHost, shrinkHost := compiletest.HostSteps(n.have, want)
	n.todo = append(growHost, grow...)
	north := compiletest.NorthboundSteps(n.have, want)
	n.todo = append(n.todo, rapid.Permutation(north).Draw(t, "northbound")...)
	n.todo = append(n.todo, func() {
		n.have.NB, n.have.SetElems = want.NB, want.SetElems
		n.holds = map[string][]netip.Addr{}
		for e := range want.Translated.Rows() {
			n.holds[e.Object.Key()] = append(n.holds[e.Object.Key()], e.IP)
		}
	})
	n.todo = append(append(n.todo, shrink...), shrinkHost...)
}

func (n *agent) apply(steps int) {
	for ; steps > 0 && len(n.todo) > 0; steps-- {
		n.todo[0]()
		n.todo = n.todo[1:]
	}
}

// tell publishes what the node's targets hold. The node itself knows it at once.
func (n *agent) tell(s *simulation, name string) {
	h := &world.Holding{Node: name, BootID: "boot-" + name, Holds: n.holds}
	n.world.SetOwn(h)
	s.happens(func(w *world.World) { w.SetHolding(h) })
}

func (s *simulation) plans(t *rapid.T) *trace.Cluster {
	net := trace.Network{}
	for name, n := range s.nodes {
		net[name] = n.have
	}
	c, err := s.reader.Read(net)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// walk sends a packet of a pod outside, over each family.
func walk(c *trace.Cluster, p *world.Pod) []trace.End {
	var ends []trace.End
	for i, dst := range []string{"172.18.0.100", "fc00:f853:ccd:e793::100"} {
		ends = append(ends, c.Walk(trace.Packet{Src: p.IPs[i], Dst: netip.MustParseAddr(dst), Proto: "udp",
			DstPort: 9})...)
	}
	return ends
}

// check takes no address for that of the link by which the routing table leads outside, which no plan tells.
func (s *simulation) check(t *rapid.T) {
	right := slices.Concat(egressIPs, first, second, []netip.Addr{{}})
	plans := s.plans(t)
	for _, p := range s.pods {
		for _, end := range walk(plans, p) {
			if end.Kind != trace.Dropped && (end.Kind != trace.Outside || !slices.Contains(right, end.Src)) {
				t.Fatalf("pod %s on %s: %s\n%v", p.Key(), p.Node, end, end.Steps)
			}
			s.checkFilter(t, p, end)
		}
	}
}

// checkFilter requires that a node that leads its own pod through its kernel has the pod under the host's leak filter.
// The walk does not see why: a connection with another mark, and a flow that a switch has cached, are no rows.
func (s *simulation) checkFilter(t *rapid.T, p *world.Pod, end trace.End) {
	if !slices.Contains(end.Steps, p.Node+": to the management port") {
		return
	}
	for i, f := range []world.Family{world.V4, world.V6} {
		elem := plan.NFTElem{Set: egress.FilteredPods(f), Key: p.IPs[i].String()}
		if _, has := s.nodes[p.Node].have.NFTElems.Get(elem); !has && strings.Contains(end.Steps[1], "/"+f.String()) {
			t.Fatalf("pod %s on %s goes by the host without its leak filter\n%v", p.Key(), p.Node, end.Steps)
		}
	}
}

// leaves says with which addresses the three pods leave.
func (s *simulation) leaves(t *rapid.T, with ...[]netip.Addr) {
	plans := s.plans(t)
	for i, p := range s.pods {
		for _, end := range walk(plans, p) {
			if end.Kind != trace.Outside || !slices.Contains(with[i], end.Src) {
				t.Fatalf("pod %s on %s: %s, want one of %v\n%v", p.Key(), p.Node, end, with[i], end.Steps)
			}
		}
	}
}

func (s *simulation) nothingLeft(t *rapid.T) {
	for name, n := range s.nodes {
		for owner := range owners(n) {
			t.Fatalf("%s still has rows of %s", name, owner)
		}
	}
}

// owners are EgressServices and what else feature egressservice compiles for, with rows in a node's plan.
func owners(n *agent) map[string]bool {
	out := map[string]bool{}
	for _, f := range all.Features() {
		if f.Name() == "egressservice" || f.Name() == "egressservice-pod" {
			for _, line := range compile.Full(n.world, []compile.Feature{f}).Lines() {
				out[fmt.Sprint(f.Name(), ": ", line)] = true
			}
		}
	}
	return out
}
