package egressip_test

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/holder"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// TestNoWrongSource: two EgressIPs are in force, and an older one comes and goes; all can select the same pods.
// Addresses move at random, and former holders are told to let go at any time; specs, selectors and pods' labels
// change; pods start, end, and leave their addresses to others. Nodes come to answer or not, to Kubernetes and to each
// other, reboot, and learn of everything late; each applies its plan row by row, and says what it holds only once it
// does. After every single row, on any node, no selected pod's packet leaves with another source, over either family:
// it arrives as one of the EgressIPs' addresses or is dropped. A third of the pods have another primary network, and
// there the very addresses of pods of the default network: what they send by the latter is dropped, and nothing that
// they send arrives with an address on a link.
func TestNoWrongSource(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(t, false)
		s.checks = s.check
		s.run(t)
	})
}

// TestServedInTheEnd: whatever has happened, once every node is well, each address has a node, and all know of it and
// had their rounds, every selected pod gets through, also on the node that holds the address.
func TestServedInTheEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(t, false)
		s.run(t)
		s.comesToRest(t)
		s.served(t)
	})
}

var multiNIC = plan.NFTChain{Family: "inet", Name: "OVN-KUBE-EGRESS-IP-MULTI-NIC"}

// simulation is three nodes that learn of one history of objects, each at its own pace.
type simulation struct {
	nodes   map[string]*agent
	history []func(*world.World)
	e       world.EgressIP    // e0, as the controller last wrote it
	zones   map[string]string // labels of nodes
	decider *agent            // the controller's world, of which it decides when selectors of nodes or labels change
	older   world.EgressIP    // the same
	told    map[string]bool   // nodes that last said that they hold the older one's address
	pods    int
	running map[string]*world.Pod // by key, with an object
	reader  *trace.Reader
	read    *trace.Cluster // what the nodes hold
	now     time.Time
	// selective: the EgressIPs have selectors of traffic.
	selective bool
	checks    func(*rapid.T) // walks packets, after each step and each row
}

type agent struct {
	world *world.World
	seen  int         // of the history
	have  *plan.State // what its targets hold: apply, begin, mix and reboot change it
	todo  []func()    // row by row, what is left of the round under way
	// walked: what it has is as it was read last.
	walked bool
	ready  map[string]bool
	boot   int

	holder holder.Machine
	facts  holder.Facts
}

// Addresses of EgressIP e0, one of each family on the primary network and one on a link, and those that its spec is
// changed to, the last with one address a family, and no slots; of the older one; and of the younger one, which stays
// on n1.
var (
	addresses = slices.Concat(compiletest.EgressAddr(0), compiletest.SecondaryAddr(0))
	changed   = slices.Concat(compiletest.EgressAddr(3), compiletest.SecondaryAddr(0))
	single    = compiletest.EgressAddr(0)
	olders    = compiletest.EgressAddr(1)
	youngers  = compiletest.EgressAddr(2)
	right     = slices.Concat(addresses, changed, olders, youngers)
)

func newSimulation(t *rapid.T, selective bool) *simulation {
	mode := rapid.SampledFrom([]world.GatewayMode{world.SharedGateway, world.LocalGateway}).Draw(t, "gateway mode")
	s := &simulation{
		selective: selective, nodes: map[string]*agent{}, now: time.Unix(1_000_000, 0),
		told: map[string]bool{}, running: map[string]*world.Pod{}, reader: trace.NewReader(), read: &trace.Cluster{},
		checks: func(*rapid.T) {},
		zones:  map[string]string{}, decider: &agent{world: world.New("", compiletest.Config(mode))},
		e: *compiletest.EgressIP(0, "", addresses...), older: *compiletest.EgressIP(-1, "", olders...),
	}
	s.e.InForce = [2]bool{true, true}
	s.e.Mark, s.older.Mark = world.FirstMark, world.FirstMark+1
	for i := 1; i <= 3; i++ {
		name := fmt.Sprint("n", i)
		w := compiletest.Small(name, mode)
		for _, ns := range []string{"ns0", "ns1", "ns2"} {
			w.SetNamespace(&world.Namespace{Name: ns, Labels: networkOf[ns],
				OwnNetwork: networkOf[ns] != nil})
		}
		w.SetNetwork(blue())
		for j := 1; j <= 3; j++ {
			w.SetNode(simulatedNode(fmt.Sprint("n", j)))
		}
		w.SetTraffic(always())
		w.SetEgressIP(s.withTraffic(younger()))
		s.nodes[name] = newSimulated(w)
		s.decider.world.SetNode(simulatedNode(name))
	}
	s.decider.world.SetTraffic(always())
	s.decider.world.SetEgressIP(s.withTraffic(younger()))
	s.settle(t)
	return s
}

func younger() *world.EgressIP {
	e := compiletest.EgressIP(1, "", youngers...)
	for _, ip := range youngers {
		e.Items = append(e.Items, world.Assignment{Node: "n1", IP: ip})
	}
	e.InForce, e.Mark = [2]bool{true, true}, world.FirstMark+2
	return e
}

// settle begins in force: n2 and n3 hold two addresses each, and all know it.
func (s *simulation) settle(t *rapid.T) {
	s.assigned([]string{"n2", "n2", "n3", "n3"})
	for _, name := range []string{"n1", "n2", "n1"} { // the last is of network blue, with the first one's addresses
		s.startPod(name)
	}
	for range 2 {
		for _, name := range []string{"n1", "n2", "n3"} {
			s.round(t, name)
		}
	}
}

// round is a whole one of a node that knows all.
func (s *simulation) round(t *rapid.T, name string) {
	n := s.nodes[name]
	n.apply(len(n.todo))
	n.learn(s, len(s.history))
	n.begin(t, s)
	n.apply(len(n.todo))
	n.tell(s, name)
}

// assigned is the controller, about e0: a node for each address of the spec, "" is none. Former holders are leaving.
func (s *simulation) assigned(to []string) {
	former := s.e.Items
	s.e.Items = nil
	for i, ip := range s.e.IPs {
		if to[i] != "" {
			s.e.Items = append(s.e.Items, world.Assignment{Node: to[i], IP: ip})
		}
	}
	s.leave(&s.e, former)
	s.wrote(s.e)
}

// leave notes former holders that are not assigned the same any more. An address that is assigned again is not leaving.
func (s *simulation) leave(e *world.EgressIP, former []world.Assignment) {
	e.Leaving = slices.DeleteFunc(slices.Clone(e.Leaving), func(l world.Leaving) bool {
		return slices.Contains(e.Items, world.Assignment{Node: l.Node, IP: l.IP})
	})
	for _, a := range former {
		if !e.Names(a.Node, a.IP) {
			e.Leaving = append(e.Leaving, world.Leaving{Node: a.Node, IP: a.IP})
		}
	}
}

// letGo is the controller that takes a former holder off, whoever still sends packets there: the time for it is over.
func (s *simulation) letGo(t *rapid.T) {
	for _, e := range []*world.EgressIP{&s.e, &s.older} {
		if len(e.Leaving) > 0 {
			i := rapid.IntRange(0, len(e.Leaving)-1).Draw(t, "leaving")
			e.Leaving = slices.Delete(slices.Clone(e.Leaving), i, i+1)
			s.wrote(*e)
		}
	}
}

func (s *simulation) wrote(e world.EgressIP) {
	s.withTraffic(&e)
	s.happens(func(w *world.World) { w.SetEgressIP(&e) })
}

// respec changes addresses, or the pods that are selected; the status comes later.
func (s *simulation) respec(t *rapid.T) {
	pods := rapid.SampledFrom([]string{"", "app=web", "app=db"}).Draw(t, "pod selector")
	ips := rapid.SampledFrom([][]netip.Addr{addresses, changed, single}).Draw(t, "addresses")
	e := *compiletest.EgressIP(0, pods, ips...)
	e.Items, e.Leaving, e.InForce, e.Nodes = s.e.Items, s.e.Leaving, s.e.InForce, s.e.Nodes
	e.Mark = s.e.Mark
	s.e = e
	s.wrote(e)
}

// comesToRest ends everything that is under way, with the addresses on two nodes.
func (s *simulation) comesToRest(t *rapid.T) {
	order := rapid.Permutation([]string{"n1", "n2", "n3"}).Draw(t, "order")
	s.assigned([]string{order[0], order[0], order[1], order[1]})
	s.assignOlder(0)
	s.e.Leaving, s.older.Leaving = nil, nil
	s.wrote(s.e)
	s.wrote(s.older)
	for _, name := range order {
		well := *s.node(name)
		s.happens(func(w *world.World) { w.SetNode(&well) })
		for _, other := range order {
			s.nodes[name].world.SetTunnel(other, world.TunnelUp)
		}
		s.nodes[name].facts.APISilent, s.nodes[name].facts.Alone = false, false
		s.detachEnded(name)
	}
	for range 4 {
		for _, name := range order {
			s.round(t, name)
		}
		s.now = s.now.Add(10 * time.Second) // what nodes yield ends, now that each can ask
	}
}

// served says that all pods' packets arrive with an egress IP, and with one each.
func (s *simulation) served(t *rapid.T) {
	plans := s.plans(t)
	for name, n := range s.nodes {
		for _, key := range n.world.Attachments() {
			a := n.world.Attachment(key)
			for _, by := range a.Interfaces() {
				for _, end := range walkBy(plans, by) {
					if (end.Kind == trace.Outside) != (by.Network == primaryOf(a)) {
						t.Fatalf("pod %s on %s by %s: %s\n%v", key, name, by.Network, end, end.Steps)
					}
				}
			}
		}
	}
	s.check(t)
}

// run is a random history. Every fourth step is a whole round of a node that knows all, for steps that are all drawn
// by themselves seldom make one: without, hardly a pod's end is ever carried out.
func (s *simulation) run(t *rapid.T) {
	for range rapid.IntRange(5, 60).Draw(t, "steps") {
		if rapid.IntRange(0, 3).Draw(t, "whole round") == 0 {
			s.roundByRows(t, rapid.SampledFrom([]string{"n1", "n2", "n3"}).Draw(t, "node"))
		} else {
			s.step(t)
		}
		s.checks(t)
	}
}

// roundByRows is a round whose states between are checked, too.
func (s *simulation) roundByRows(t *rapid.T, name string) {
	n := s.nodes[name]
	n.learn(s, len(s.history))
	n.begin(t, s)
	for len(n.todo) > 0 {
		n.apply(rapid.IntRange(1, 8).Draw(t, "rows"))
		s.checks(t)
	}
	n.tell(s, name)
}

func (s *simulation) happens(f func(*world.World)) { s.history = append(s.history, f) }

func (s *simulation) step(t *rapid.T) {
	name := rapid.SampledFrom([]string{"n1", "n2", "n3"}).Draw(t, "node")
	n := s.nodes[name]
	if s.selective && rapid.IntRange(0, 5).Draw(t, "networks") == 0 {
		s.redirect(t)
		return
	}
	switch rapid.IntRange(0, 18).Draw(t, "what") {
	case 0:
		s.assign(t)
	case 1:
		s.startPod(name)
	case 2:
		s.flip(t, name)
	case 3:
		n.reboot(s, name)
	case 4, 5:
		n.learn(s, rapid.IntRange(1, 5).Draw(t, "news"))
	case 6:
		n.begin(t, s)
	case 7, 8:
		n.apply(rapid.IntRange(1, 4).Draw(t, "rows"))
	case 9:
		n.tell(s, name)
	case 10:
		n.receive(t, s)
	case 11:
		other := rapid.SampledFrom([]string{"n1", "n2", "n3"}).Draw(t, "other")
		n.world.SetTunnel(other, world.Tunnel(rapid.IntRange(0, 2).Draw(t, "state")))
	case 12:
		s.assignOlder(rapid.IntRange(0, 3).Draw(t, "older"))
	case 13:
		s.letGo(t)
	case 14:
		s.respec(t)
	case 15:
		s.relabel(t)
	case 16:
		s.end(t, name)
	case 17:
		s.now = s.now.Add(rapid.SampledFrom(spans).Draw(t, "later"))
	case 18:
		s.reselect(t, name)
	}
}

// relabel is somebody who changes a pod's label, which selectors ask for.
func (s *simulation) relabel(t *rapid.T) {
	keys := slices.Sorted(maps.Keys(s.running))
	if len(keys) == 0 {
		return
	}
	p := *s.running[rapid.SampledFrom(keys).Draw(t, "pod")]
	p.Labels = map[string]string{"app": rapid.SampledFrom([]string{"web", "db"}).Draw(t, "app")}
	s.running[p.Key()] = &p
	s.happens(func(w *world.World) { w.SetPod(&p) })
}

// end deletes a pod by force: it runs on until it is detached, and its addresses are given to the next.
func (s *simulation) end(t *rapid.T, name string) {
	if rapid.Bool().Draw(t, "detach") {
		s.detachEnded(name)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(s.running)) {
		if s.running[key].Node == name {
			delete(s.running, key)
			s.happens(func(w *world.World) { w.DelPod(key) })
			return
		}
	}
}

// detachEnded is CNI DEL of the pods of a node that have no object any more.
func (s *simulation) detachEnded(name string) {
	n := s.nodes[name]
	for _, key := range n.world.Attachments() {
		if s.running[key] == nil {
			n.world.DelAttachment(key, n.world.Attachment(key).HostIface)
			delete(n.ready, key)
		}
	}
}

// assignOlder is the controller, about the older EgressIP: node 0 is none. It is in force from when a node says that it
// holds the address until there is none.
func (s *simulation) assignOlder(node int) {
	former := s.older.Items
	s.older.Items = nil
	for _, ip := range olders {
		if node > 0 {
			s.older.Items = append(s.older.Items, world.Assignment{Node: fmt.Sprint("n", node), IP: ip})
		}
	}
	s.leave(&s.older, former)
	inForce := node > 0 && (s.older.InForce[world.V4] || len(s.told) > 0)
	s.older.InForce = [2]bool{inForce, inForce}
	s.wrote(s.older)
}

// receive is a claim of another machine to an address; the API server and other nodes answer or do not.
func (n *agent) receive(t *rapid.T, s *simulation) {
	n.facts.APISilent = rapid.Bool().Draw(t, "API silent")
	n.facts.Alone = rapid.Bool().Draw(t, "alone")
	claim := holder.Claim{IP: rapid.SampledFrom(addresses).Draw(t, "address"), MAC: "02:00:00:00:00:99"}
	if i := rapid.IntRange(0, 3).Draw(t, "of n"); i > 0 {
		claim.MAC = compiletest.Host(fmt.Sprint("n", i)).UplinkMAC
	}
	n.facts.Claims = append(n.facts.Claims, claim)
	n.decide(s)
}

// assign is the controller: each address goes to some node, or to none.
func (s *simulation) assign(t *rapid.T) {
	var to []string
	for range s.e.IPs {
		to = append(to, rapid.SampledFrom([]string{"", "n1", "n2", "n3"}).Draw(t, "assigned"))
	}
	s.assigned(to)
}

// startPod is CNI ADD: the pod's own node knows of it at once, and the pod runs when that node has applied a plan with
// it, and no more than that: an orphan may have had its address, and the host's rules drop all that one sends. Its
// addresses are the first that no attached pod of the node has.
func (s *simulation) startPod(name string) {
	own := s.nodes[name].world
	if len(own.Attachments()) >= 3 {
		return
	}
	p := compiletest.Pod(s.pods, name)
	p.IPs = freeIPs(own, name, ref.DefaultNetwork)
	s.pods++
	s.running[p.Key()] = p
	a := compiletest.Attachment(p)
	joinBlue(own, name, p, a)
	own.SetPod(p)
	own.SetAttachment(a)
	s.happens(func(w *world.World) { w.SetPod(p) })
}

func freeIPs(w *world.World, name, network string) []netip.Addr {
	for i := 0; ; i++ {
		ips := compiletest.PodIPs(i, int(name[1]-'0'))
		used := func(key string) bool { return slices.Equal(w.Attachment(key).In(network), ips) }
		if !slices.ContainsFunc(w.Attachments(), used) {
			return ips
		}
	}
}

func (s *simulation) flip(t *rapid.T, name string) {
	n := *s.node(name)
	n.Ready = rapid.Bool().Draw(t, "ready")
	s.happens(func(w *world.World) { w.SetNode(&n) })
}

func (n *agent) bootID(name string) string {
	if n.boot == 0 {
		return "boot-" + name
	}
	return fmt.Sprint("boot-", name, n.boot)
}

// reboot loses what OpenFlow and the kernel hold; the databases are on disk, and ovn-controller brings back what they
// say. Pods are gone.
func (n *agent) reboot(s *simulation, name string) {
	n.boot++
	n.todo, n.ready, n.walked = nil, map[string]bool{}, false
	n.have.Flows = plan.Table[plan.Flow, string]{}
	n.have.NFTRules, n.have.NFTElems = plan.Table[plan.NFTRule, string]{}, plan.Table[plan.NFTElem, string]{}
	n.have.Rules, n.have.Routes = plan.Table[plan.Rule, plan.None]{}, plan.Table[plan.RouteKey, plan.Route]{}
	fresh := *s.node(name)
	s.happens(func(w *world.World) { w.SetNode(&fresh) })
}

func (n *agent) learn(s *simulation, news int) {
	for ; news > 0 && n.seen < len(s.history); news-- {
		s.history[n.seen](n.world)
		n.seen++
	}
}

// begin starts a round: what grows, in any order; the Northbound's rows, in any order too, for what a transaction
// changes at once the datapath changes flow by flow; what shrinks. What the node holds by then is what the plan
// announces.
func (n *agent) begin(t *rapid.T, s *simulation) {
	r := n.round(t, s)
	northbound := n.passes
	if !s.selective {
		northbound = func(want *plan.State) []func() { return compiletest.NorthboundSteps(n.have, want) }
	}
	n.todo = append(r.grow, rapid.Permutation(northbound(r.want)).Draw(t, "northbound")...)
	n.todo = append(append(n.todo, r.applied), r.shrink...)
	n.walked = false // the sets that are new are there already
}

// steps are those of a round: what grows before the Northbound, all of the Northbound, and what shrinks after it.
type steps struct {
	want         *plan.State
	grow, shrink []func()
	applied      func()
}

func (n *agent) round(t *rapid.T, s *simulation) steps {
	n.decide(s)
	want := compile.Full(n.world, all.Features())
	grow, shrink := compiletest.FlowSteps(n.have, want)
	growHost, shrinkHost := compiletest.HostSteps(n.have, want)
	grow, shrink = rapid.Permutation(grow).Draw(t, "grow"), rapid.Permutation(shrink).Draw(t, "shrink")
	attached := n.world.Attachments() // in this plan; who comes later waits for the next round
	added := func() {
		for _, key := range attached {
			n.ready[key] = true
		}
	}
	applied := func() {
		n.have.NB, n.have.SetElems = want.NB, want.SetElems
		n.facts.Holds, n.facts.Ahead = holder.HoldsOf(want), holder.AheadOf(want)
	}
	return steps{want: want, grow: append(growHost, grow...), applied: applied,
		shrink: append(append(shrink, shrinkHost...), added)}
}

// decide is the holder's step, which the agent takes at the beginning of each round. The API server answers at once,
// unless it is silent.
func (n *agent) decide(s *simulation) {
	n.facts.View = &n.world.View
	r := n.holder.Step(n.facts, s.now)
	n.facts.Claims, n.facts.Answers = nil, nil
	for c, y := range r.Yields {
		n.world.SetYielded(c, y)
	}
	for c, node := range r.Overdue {
		n.world.SetOverdue(c, node)
	}
	for i, name := range r.Ask {
		x := holder.Answer{Name: name, Last: i == len(r.Ask)-1}
		if n.facts.APISilent {
			x.Err = errors.New("silent")
		} else if name == "e0" {
			e := s.e
			x.EgressIP = s.withTraffic(&e)
		}
		n.facts.Answers = append(n.facts.Answers, x)
		if x.Err != nil {
			return
		}
	}
}

// spans of time that go by at once.
var spans = []time.Duration{200 * time.Millisecond, 2 * time.Second, 15 * time.Second, 70 * time.Second}

func newSimulated(w *world.World) *agent {
	n := &agent{world: w, have: plan.New(), ready: map[string]bool{}, holder: holder.Machine{Self: w.Self}}
	n.facts.NotSteered = func(c world.EgressAddress) string { return egressip.NotSteered(w, c.Object, c.IP) }
	return n
}

func (n *agent) apply(steps int) {
	n.walked = n.walked && (steps == 0 || len(n.todo) == 0)
	for ; steps > 0 && len(n.todo) > 0; steps-- {
		n.todo[0]()
		n.todo = n.todo[1:]
	}
}

// owner is the EgressIP that an address is of, or "".
func owner(ip netip.Addr) string {
	switch {
	case slices.Contains(olders, ip):
		return "e-1"
	case slices.Contains(youngers, ip):
		return "e1"
	case slices.Contains(right, ip):
		return "e0"
	}
	return ""
}

// tell publishes what the node's targets hold, with its boot id. The node itself knows it at once.
func (n *agent) tell(s *simulation, name string) {
	h := &world.Holding{Node: name, BootID: n.bootID(name), Holds: map[string][]netip.Addr{}}
	for id, row := range n.have.NB.Rows() {
		ip, err := netip.ParseAddr(fmt.Sprint(row.Cols["external_ip"]))
		if name := owner(ip); err == nil && id.Table == "NAT" && name != "" {
			h.Holds[name] = append(h.Holds[name], ip)
		}
	}
	for _, ip := range compiletest.SecondaryAddr(0) {
		rule := plan.NFTRule{Chain: multiNIC, Name: "egressip/e0/" + ip.String()}
		if _, translated := n.have.NFTRules[rule]; translated && len(n.todo) == 0 {
			h.Holds["e0"] = append(h.Holds["e0"], ip)
		}
	}
	if delete(s.told, name); len(h.Holds["e-1"]) > 0 {
		s.told[name] = true
	}
	n.world.SetOwn(h)
	s.happens(func(w *world.World) { w.SetHolding(h) })
}

// plans are what all targets hold, read for walking.
func (s *simulation) plans(t *rapid.T) *trace.Cluster {
	changed := trace.Network{}
	for name, n := range s.nodes {
		if !n.walked {
			changed[name], n.walked = n.have, true
		}
	}
	var err error
	if s.read, err = s.reader.Reread(s.read, changed); err != nil {
		t.Fatal(err)
	}
	return s.read
}

// leavesRightly reports whether a pod's packet leaves with an egress IP, by an interface into its primary network.
func leavesRightly(a *world.Attachment, by world.Interface, end trace.End) bool {
	onLink := slices.Contains(compiletest.SecondaryAddr(0), end.Src)
	return end.Kind == trace.Outside && slices.Contains(right, end.Src) && by.Network == primaryOf(a) &&
		!(onLink && inBlue(a))
}

// primaryOf is the network by which a pod talks to the outside.
func primaryOf(a *world.Attachment) string {
	if inBlue(a) {
		return "blue"
	}
	return ref.DefaultNetwork
}

// walkBy follows a packet of a pod to outside, over each family, by one of its interfaces.
func walkBy(c *trace.Cluster, by world.Interface) []trace.End {
	return walkByTo(c, by, [2]string{"172.18.0.100", "fc00:f853:ccd:e793::100"})
}

func walkByTo(c *trace.Cluster, by world.Interface, to [2]string) (ends []trace.End) {
	for i, dst := range to {
		ends = append(ends, c.Walk(trace.Packet{Src: by.IPs[i], Dst: netip.MustParseAddr(dst), Proto: "udp",
			DstPort: 9, Network: names(by.Network)})...)
	}
	return ends
}

func (s *simulation) check(t *rapid.T) {
	plans := s.plans(t)
	for name, n := range s.nodes {
		for _, key := range n.world.Attachments() {
			if !n.ready[key] {
				continue
			}
			a := n.world.Attachment(key)
			for _, by := range a.Interfaces() {
				for _, end := range walkBy(plans, by) {
					if end.Kind != trace.Dropped && !leavesRightly(a, by, end) {
						t.Fatalf("pod %s on %s by %s: %s\n%v", key, name, by.Network, end, end.Steps)
					}
				}
			}
		}
	}
}
