package clearance_test

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/clearance"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// change is something that the API has shown.
type change func(*world.World)

// kinds of objects, each with a watch.
var kinds = []string{"pod", "namespace", "network", "egressip", "traffic", "report", "service", "egressservice",
	"slice"}

// event is one of a kind.
type event struct {
	kind string
	change
}

// versions are numbers of events, by kind: up to them the events of the kind have come.
type versions map[string]int

// holder is a node that has followed the API up to some versions, as its targets have it.
type holder struct {
	world *world.World
	pos   versions
	dead  bool
}

// history is one of the API, followed by n1, whose pods it is about, at once, and by n2 and n3 later.
type history struct {
	*rapid.T
	log     []event
	w       *world.World
	machine clearance.Machine
	answers []clearance.Answer
	asked   []question
	now     time.Time
	wake    time.Time
	holders map[string]*holder
	led     map[world.PodAddr]map[ref.Object]map[string]bool // what n1's targets lead to a holder
	ledTo   map[ref.Object]destinations.Set                  // where to

	there versions // by kind and key: the last events of objects that are there
	seen  versions // the highest that n1's process has seen
	quiet bool     // it has seen no pod since it began
}

// question is one under way, and how much of the log it names.
type question struct {
	clearance.Question
	at versions
}

func begin(t *rapid.T) *history {
	h := &history{T: t, now: time.Unix(1000, 0), holders: map[string]*holder{}, there: versions{},
		seen: versions{}}
	h.w = small("n1")
	for _, name := range []string{"n2", "n3"} {
		h.holders[name] = &holder{world: small(name), pos: versions{}}
		h.report(name)
	}
	for i, network := range []string{"", "blue", "red"} {
		ns := &world.Namespace{Name: fmt.Sprint("ns", i), OwnNetwork: network != ""}
		if network != "" {
			h.setNetwork(network, i)
		}
		h.show("namespace", ns.Name, func(w *world.World) { w.SetNamespace(ns) })
		pods := []string{"group in (0, 3)", "group in (1, 3)", "group=2"}[i]
		e := compiletest.EgressIP(i, pods, compiletest.EgressAddr(i)[0])
		if i < 2 {
			e.Traffic = compiletest.TrafficSelector([]string{"a", "b"}[i])
		}
		h.show("egressip", e.Name, placed(e, "n2"))
	}
	h.restart()
	return h
}

// small has nodes with the same subnets in each network.
func small(self string) *world.World {
	w := compiletest.Small(self, world.SharedGateway)
	for i := range 3 {
		w.SetNode(inNetworks(i+1, "blue", "red"))
	}
	return w
}

// inNetworks is node n<i> with its subnets of the default network in others, too.
func inNetworks(i int, networks ...string) *world.Node {
	n := compiletest.Node(i)
	n.Further = map[string]world.NodeNetwork{}
	for _, name := range networks {
		n.Further[name] = world.NodeNetwork{Subnets: n.Subnets}
	}
	return n
}

// setNetwork gives a network a number that no other one has. Pods of a number that is new here wait for the first event
// of a pod.
func (h *history) setNetwork(name string, id int) {
	if h.quiet {
		return
	}
	for _, other := range h.w.Networks() {
		if h.w.Network(other).ID == id {
			return
		}
	}
	n := *compiletest.Config(world.SharedGateway).DefaultNetwork()
	n.Name, n.ID = name, id
	n.Namespaces = []string{map[string]string{"blue": "ns1", "red": "ns2"}[name]}
	h.show("network", name, func(w *world.World) { w.SetNetwork(&n) })
}

func placed(e *world.EgressIP, node string) change {
	x := *e
	x.InForce, x.Items = [2]bool{true, true}, []world.Assignment{{Node: node, IP: e.IPs[0]}}
	return func(w *world.World) { w.SetEgressIP(&x) }
}

// report is a node's.
func (h *history) report(node string) {
	h.show("report", node, func(w *world.World) {
		w.SetHolding(&world.Holding{Node: node, BootID: "boot-" + node, Port: 1})
	})
}

// show is a change of an object that n1 sees at once.
func (h *history) show(kind, name string, c change) {
	h.log = append(h.log, event{kind, c})
	c(h.w)
	h.there[kind+" "+name], h.seen[kind] = len(h.log), len(h.log)
}

// end is an object's, which n1 sees at once, and of which nobody knows who lists later.
func (h *history) end(kind, name string, c change) {
	h.show(kind, name, c)
	delete(h.there, kind+" "+name)
}

// restart has n1's agent start again, with what its targets have.
func (h *history) restart() {
	h.seen, h.quiet = versions{}, true
	for _, version := range h.there {
		kind := h.log[version-1].kind
		h.seen[kind] = max(h.seen[kind], version)
	}
	former := clearance.Former{Nodes: [2]map[ref.Object][]string{{}, {}}, Pods: map[world.PodAddr][]ref.Object{},
		To: h.ledTo}
	for at, objects := range h.led {
		for object, all := range objects {
			former.Pods[at] = append(former.Pods[at], object)
			nodes := former.Nodes[world.FamilyOf(at.IP)]
			for node := range all {
				if !slices.Contains(nodes[object], node) {
					nodes[object] = append(nodes[object], node)
				}
			}
			slices.Sort(nodes[object])
		}
	}
	attached := h.w.Attachments()
	w := small("n1")
	for _, e := range h.log {
		e.change(w)
	}
	for _, key := range attached {
		w.SetAttachment(h.w.Attachment(key))
	}
	h.w, h.machine, h.answers, h.asked = w, clearance.Machine{}, nil, nil
	h.machine.Begin(w, former)
}

// step is one round of n1's agent.
func (h *history) step() {
	r := h.machine.Step(h.w, clearance.Facts{Answers: h.answers, PastLists: !h.quiet},
		h.now)
	h.answers, h.wake = nil, r.Wake
	for _, q := range r.Ask {
		h.asked = append(h.asked, question{q, maps.Clone(h.seen)})
	}
	h.led, h.ledTo = map[world.PodAddr]map[ref.Object]map[string]bool{}, map[ref.Object]destinations.Set{}
	h.eachClaim(func(at world.PodAddr, by ref.Object, node string) {
		nodes := nodesOf(h.w, by, world.FamilyOf(at.IP))
		if node != "" && h.w.Cleared(node) && !egress.Waits(&h.w.View, by, at, nodes) {
			if h.led[at] == nil {
				h.led[at] = map[ref.Object]map[string]bool{}
			}
			if h.led[at][by] == nil {
				h.led[at][by] = map[string]bool{}
			}
			h.led[at][by][node], h.ledTo[by] = true, h.w.ClaimedDestinations(by, world.FamilyOf(at.IP))
		}
	})
	h.check()
}

// eachClaim are those of n1's attached pods, by address in their primary networks.
func (h *history) eachClaim(f func(at world.PodAddr, by ref.Object, node string)) {
	for _, key := range h.w.Attachments() {
		p := h.w.Pod(key)
		if p == nil {
			continue
		}
		network := h.w.Network(h.w.PrimaryNetwork(p.Namespace))
		for _, ip := range h.w.Attachment(key).In(network.Name) {
			for _, c := range h.w.Claims(p, network.Name, world.FamilyOf(ip)) {
				for _, node := range nodesOf(h.w, c.By, world.FamilyOf(ip)) {
					f(world.PodAddr{Network: network.ID, IP: ip}, c.By, node)
				}
			}
		}
	}
}

func nodesOf(w *world.World, by ref.Object, f world.Family) (nodes []string) {
	p := w.PlacementOf(by.Key())
	if p == nil {
		return nil
	}
	for _, a := range p.Items {
		if world.FamilyOf(a.IP) == f && a.Node != "n1" && a.Node != "" {
			nodes = append(nodes, a.Node)
		}
	}
	return nodes
}

// check: what n1 leads to a holder, that one translates for the same object or not at all.
func (h *history) check() {
	h.eachClaim(func(at world.PodAddr, by ref.Object, node string) {
		o := h.holders[node]
		if o == nil || !h.led[at][by][node] {
			return
		}
		f := world.FamilyOf(at.IP)
		for p := range o.world.EachPod() {
			for _, c := range o.claimsTo(p, at) {
				here := slices.Contains(nodesOf(o.world, c.By, f), node)
				to := h.w.ClaimedDestinations(by, f)
				if c.By != by && here && o.world.ClaimedDestinations(c.By, f).Overlaps(to) {
					h.Fatalf("n1 leads %v to %s for %v, which translates it for %v (pod %s), as of %v of %d", at, node, by,
						c.By, p.Key(), o.pos, len(h.log))
				}
			}
		}
	})
}

// claimsTo are those to a pod of n1, if the holder knows it by an address.
func (h *holder) claimsTo(p *world.Pod, at world.PodAddr) []world.Claim {
	network := h.world.Network(h.world.PrimaryNetwork(p.Namespace))
	if p.Node != "n1" || network == nil || network.ID != at.Network ||
		!slices.Contains(h.world.PodIPs(p, network.Name), at.IP) {
		return nil
	}
	return h.world.Claims(p, network.Name, world.FamilyOf(at.IP))
}

// draw is one change of anything.
func (h *history) draw() {
	i := rapid.IntRange(0, 2).Draw(h.T, "i")
	node := rapid.SampledFrom([]string{"n2", "n3"}).Draw(h.T, "node")
	pod := i + 3*rapid.IntRange(0, 1).Draw(h.T, "second pod")
	switch rapid.IntRange(0, 20).Draw(h.T, "kind") {
	case 0, 1:
		h.setPod(pod, h.drawGroup())
	case 2:
		h.delPod(pod)
	case 12:
		h.setNetwork(rapid.SampledFrom([]string{"blue", "red"}).Draw(h.T, "network"), 1+i)
	case 3:
		e := *h.w.EgressIP(fmt.Sprint("e", i))
		h.show("egressip", e.Name, placed(&e, node))
	case 4:
		h.setTraffic(i)
	case 5:
		switch rapid.IntRange(0, 2).Draw(h.T, "changes meanwhile") {
		case 0:
			h.setPod(pod, h.drawGroup())
		case 1:
			h.setTraffic(i)
		}
		h.restart()
	case 11:
		group := h.setEgressIP(rapid.SampledFrom([]int{-1, 3}).Draw(h.T, "older or younger"), node)
		h.step()
		h.setPod(pod, group)
		h.step()
		h.followBut(node, "egressip")
	case 13, 14:
		h.drawTwo(pod, node)
	case 15:
		h.setNamespace(i)
	case 16:
		h.setService()
	case 17:
		h.setEgressService(node)
	case 18:
		h.setSlice()
	case 19, 20:
		h.drawTwo(pod, node)
	case 10:
		if h.w.Holding(node) == nil {
			h.report(node)
		} else {
			h.end("report", node, func(w *world.World) { w.DelHolding(node) })
		}
	case 6:
		h.holders[node].dead = !h.holders[node].dead
	default:
		h.follow(node)
	}
}

// deciding are the kinds of objects that decide about claims.
var deciding = []string{"pod", "namespace", "egressip", "traffic", "service", "egressservice", "slice", "network"}

// drawTwo are changes of two kinds, and a node that knows the second one and may not know the first one.
func (h *history) drawTwo(pod int, node string) {
	late := rapid.SampledFrom(deciding).Draw(h.T, "first")
	h.setKind(late, pod, node)
	h.step()
	for range rapid.IntRange(1, 3).Draw(h.T, "then") {
		h.setKind(rapid.SampledFrom(deciding).Draw(h.T, "second"), pod, node)
		if rapid.Bool().Draw(h.T, "in a step") {
			h.step()
		}
	}
	h.step()
	h.followBut(node, late)
}

func (h *history) setKind(kind string, pod int, node string) {
	switch kind {
	case "pod":
		h.setPod(pod, h.drawGroup())
	case "namespace":
		h.setNamespace(pod % 3)
	case "egressip":
		h.setEgressIP(rapid.SampledFrom([]int{-1, 3}).Draw(h.T, "older or younger"), node)
	case "traffic":
		h.setTraffic(pod % 3)
	case "service":
		h.setService()
	case "egressservice":
		h.setEgressService(node)
	case "slice":
		h.setSlice()
	case "network":
		network := rapid.SampledFrom([]string{"blue", "red"}).Draw(h.T, "network")
		h.setNetwork(network, 1+rapid.IntRange(0, 2).Draw(h.T, "number"))
	}
}

// setNamespace gives a namespace a label or another one.
func (h *history) setNamespace(i int) {
	n := *h.w.Namespace(fmt.Sprint("ns", i))
	n.Labels = map[string]string{"l": rapid.SampledFrom([]string{"0", "1"}).Draw(h.T, "label")}
	h.show("namespace", n.Name, func(w *world.World) { w.SetNamespace(&n) })
}

// setService has the Service of an EgressService select pods of a group, or none.
func (h *history) setService() {
	pods, _ := labels.Parse(fmt.Sprint("group=", h.drawGroup()))
	clusterIPs := []netip.Addr{compiletest.V4(10, 96, 1, 1), netip.MustParseAddr("fd00:10:96::1")}
	if rapid.Bool().Draw(h.T, "one family") {
		clusterIPs = clusterIPs[:1]
	}
	lb := rapid.IntRange(0, 4).Draw(h.T, "load balancer") > 0
	h.show("service", "ns0/s0", func(w *world.World) {
		s := compiletest.LoadBalancer(0)
		if old := w.Service(s.Key()); old != nil {
			s.Ports = old.Ports
		}
		s.Pods, s.ClusterIPs, s.LoadBalancer = pods, clusterIPs, lb
		w.SetService(s)
	})
}

// setSlice gives the Service endpoints.
func (h *history) setSlice() {
	var all []world.Endpoint
	for range rapid.IntRange(0, 2).Draw(h.T, "endpoints") {
		ip := compiletest.PodIPs(rapid.IntRange(0, 2).Draw(h.T, "of ip"), 1)[rapid.IntRange(0, 1).Draw(h.T, "family")]
		name := rapid.SampledFrom([]string{"", "p0", "p3"}).Draw(h.T, "names")
		all = append(all, world.Endpoint{AddrPort: netip.AddrPortFrom(ip, 8080), Node: "n1", Pod: name, Ready: true,
			Serving: true})
	}
	h.show("slice", "ns0/s0", func(w *world.World) {
		s := compiletest.LoadBalancer(0)
		s.Pods = labels.Nothing()
		if old := w.Service(s.Key()); old != nil {
			x := *old
			s = &x
		}
		s.Ports = []world.ServicePort{{Protocol: "tcp", Port: 80, Endpoints: all}}
		w.SetService(s)
	})
}

// setEgressService gives that EgressService a host, or none.
func (h *history) setEgressService(node string) {
	e := compiletest.EgressService(0)
	if rapid.Bool().Draw(h.T, "hosted") {
		e.Host = node
		for f, ip := range compiletest.LoadBalancer(0).LoadBalancerIPs {
			if rapid.Bool().Draw(h.T, "has address") {
				e.Items = append(e.Items, world.Assignment{Node: node, IP: ip})
				e.InForce[f] = rapid.Bool().Draw(h.T, "in force")
			}
		}
	}
	if e.DropWhenUnassigned = rapid.IntRange(0, 3).Draw(h.T, "drops") == 0; h.w.EgressService(e.Key()) != nil {
		o := h.w.EgressService(e.Key())
		if e.Generation = o.Generation; o.DropWhenUnassigned != e.DropWhenUnassigned {
			e.Generation++
		}
		e.UID = o.UID
	} else {
		e.UID = fmt.Sprint("uid-s", len(h.log))
	}
	if rapid.IntRange(0, 5).Draw(h.T, "goes") == 0 && h.w.EgressService(e.Key()) != nil {
		h.show("egressservice", e.Key(), func(w *world.World) { w.DelEgressService(e.Key()) })
		return
	}
	h.show("egressservice", e.Key(), func(w *world.World) { w.SetEgressService(e) })
}

// setEgressIP makes an EgressIP with all destinations, or changes it: it may have another one's pods, and may stand by.
// It returns the group.
func (h *history) setEgressIP(i int, node string) int {
	name, generation := fmt.Sprint("e", i), int64(0)
	group := rapid.IntRange(1, 3).Draw(h.T, "group")
	e := compiletest.EgressIP(i, fmt.Sprint("group=", group), compiletest.EgressAddr(i+9)...)
	if old := h.w.EgressIP(name); old != nil {
		if generation = old.Generation; old.Pods.String() != e.Pods.String() {
			generation++
		}
	}
	if e.Namespaces = labels.Everything(); rapid.Bool().Draw(h.T, "of some namespaces") {
		e.Namespaces = labels.SelectorFromSet(labels.Set{"l": "1"})
	}
	if e.Traffic = nil; rapid.Bool().Draw(h.T, "some destinations") {
		e.Traffic = compiletest.TrafficSelector("b")
	}
	asks := func(e *world.EgressIP) string { return fmt.Sprint(e.Namespaces, e.Traffic) }
	if old := h.w.EgressIP(name); old != nil && asks(old) != asks(e) {
		generation = old.Generation + 1
	}
	e.NeverOverridden = rapid.Bool().Draw(h.T, "never overridden")
	e.Generation = generation
	inForce := [2]bool{rapid.Bool().Draw(h.T, "in force"), rapid.Bool().Draw(h.T, "in force v6")}
	if old := h.w.EgressIP(name); old != nil {
		e.UID = old.UID
		e.DropWhenUnassigned = old.DropWhenUnassigned
	} else {
		e.UID = fmt.Sprint("uid-e", len(h.log))
	}
	if d := rapid.IntRange(0, 4).Draw(h.T, "drops") == 0; d != e.DropWhenUnassigned {
		e.DropWhenUnassigned = d
		e.Generation++
	}
	var items []world.Assignment
	for _, ip := range e.IPs {
		if n := rapid.SampledFrom([]string{node, node, "n2", "n3", "n1", ""}).Draw(h.T, "at"); n != "" {
			items = append(items, world.Assignment{Node: n, IP: ip})
		} else {
			inForce[world.FamilyOf(ip)] = false
		}
	}
	if rapid.IntRange(0, 5).Draw(h.T, "goes") == 0 && h.w.EgressIP(name) != nil {
		h.show("egressip", name, func(w *world.World) { w.DelEgressIP(name) })
		return group
	}
	h.show("egressip", name, func(w *world.World) {
		x := *e
		x.InForce, x.Items = inForce, items
		w.SetEgressIP(&x)
	})
	return group
}

// setTraffic gives an EgressIPTraffic other networks.
func (h *history) setTraffic(i int) {
	some := rapid.SampledFrom([]string{"172.20.0.0/16", "172.21.0.0/16"})
	networks := rapid.SliceOfN(some, 0, 2).Draw(h.T, "networks")
	t := compiletest.Traffic(i, rapid.SampledFrom([]string{"a", "b"}).Draw(h.T, "to"), networks...)
	h.show("traffic", t.Name, func(w *world.World) { w.SetTraffic(t) })
}

func (h *history) drawGroup() int { return rapid.IntRange(0, 3).Draw(h.T, "group") }

// setPod makes a pod, or attaches it again, with one of few addresses that no other attached pod of its network has, or
// gives it another group.
func (h *history) setPod(i, group int) {
	p := compiletest.Pod(i, "n1")
	p.Labels = map[string]string{"group": fmt.Sprint(group)}
	old, attached := h.w.Pod(p.Key()), h.w.Attachment(p.Key()) != nil
	switch {
	case old != nil && old.Terminating:
		return
	case old != nil:
		p.UID, p.IPs, p.Further = old.UID, old.IPs, old.Further
	default:
		p.UID = fmt.Sprint("uid-", len(h.log))
	}
	if !attached {
		ips := compiletest.PodIPs(rapid.IntRange(0, 2).Draw(h.T, "ip"), 1)
		if p.IPs, p.Further = ips, nil; p.Namespace != "ns0" {
			p.IPs = compiletest.PodIPs(10+i, 1)
			p.Further = []world.Interface{{Network: h.w.PrimaryNetwork(p.Namespace), MAC: world.MAC(ips[0]), IPs: ips}}
		}
		if h.isAttached(p) {
			return
		}
		h.w.SetAttachment(compiletest.Attachment(p))
		if rapid.Bool().Draw(h.T, "before its event") {
			h.step()
		}
	}
	h.show("pod", p.Key(), func(w *world.World) { w.SetPod(p) })
	h.quiet = false
}

// delPod detaches a pod, of which the API may know that it is going away, or then removes its object.
func (h *history) delPod(i int) {
	key := compiletest.Pod(i, "n1").Key()
	if at := h.w.Attachment(key); at != nil {
		h.w.DelAttachment(key, at.HostIface)
		if p := h.w.Pod(key); p != nil && rapid.Bool().Draw(h.T, "going") {
			going := *p
			going.Terminating = true
			h.show("pod", key, func(w *world.World) { w.SetPod(&going) })
			h.quiet = false
		}
		return
	}
	p, end := h.w.Pod(key), h.end
	if p == nil {
		return
	}
	if h.isAttached(p) {
		end = h.show // a pod's object is gone long before another pod has its address, as seen by a later process
	}
	end("pod", key, func(w *world.World) { w.DelPod(key) })
	h.quiet = false
}

// isAttached says whether a pod that is attached has an address of p's in the same network.
func (h *history) isAttached(p *world.Pod) bool {
	return slices.ContainsFunc(h.w.Attachments(), func(key string) bool {
		at := h.w.Attachment(key)
		return slices.Equal(at.IPs, p.IPs) || at.Namespace == p.Namespace && len(p.Further) > 0 &&
			slices.Equal(at.Further[0].IPs, p.Further[0].IPs)
	})
}

// follow has a holder get further, and answer.
func (h *history) follow(name string) {
	h.followBut(name, rapid.SampledFrom(append([]string{"", "all"}, kinds...)).Draw(h.T, "late with"))
}

// followBut has a holder follow all kinds to the end but one, or "all", and answer.
func (h *history) followBut(name, late string) {
	at := h.holders[name]
	if at.dead {
		return
	}
	for _, kind := range kinds {
		end := len(h.log)
		if late == kind || late == "all" {
			end = rapid.IntRange(at.pos[kind], end).Draw(h.T, "as far as")
		}
		at.follow(h.log, kind, end)
	}
	h.asked = slices.DeleteFunc(h.asked, func(q question) bool {
		if q.Node != name || !at.hasReached(q.at) && rapid.Bool().Draw(h.T, "waits") {
			return false
		}
		a := clearance.Answer{Question: q.Question}
		if !at.hasReached(q.at) {
			a.Err = errors.New("not yet")
		}
		h.answers = append(h.answers, a)
		return true
	})
}

// follow has a holder see the events of a kind before one.
func (h *holder) follow(log []event, kind string, end int) {
	for _, e := range log[h.pos[kind]:end] {
		if e.kind == kind {
			e.change(h.world)
		}
	}
	h.pos[kind] = end
}

func (h *holder) hasReached(v versions) bool {
	return !slices.ContainsFunc(kinds, func(kind string) bool { return h.pos[kind] < v[kind] })
}

// settle removes pods that are detached, and has all holders live, follow and answer, for as long as it takes.
func (h *history) settle() {
	for i := range 6 {
		if h.w.Attachment(compiletest.Pod(i, "n1").Key()) == nil {
			h.delPod(i)
		}
	}
	for _, name := range []string{"n2", "n3"} {
		h.report(name)
	}
	for range 10 {
		for _, name := range []string{"n2", "n3"} {
			at := h.holders[name]
			at.dead = false
			for _, kind := range kinds {
				at.follow(h.log, kind, len(h.log))
			}
			h.follow(name)
		}
		h.step()
		h.now = h.now.Add(time.Second)
	}
}

// TestLeadsWhereItIsRight: whatever happens in the API, and with the agents of holders and of the pods' node, nothing
// is led to a holder that translates it for another object; and all is, once the holders have followed.
func TestLeadsWhereItIsRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := begin(t)
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			h.draw()
			if h.step(); rapid.Bool().Draw(t, "time passes") {
				h.now = h.now.Add(time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond)
				h.step()
			}
		}
		h.settle()
		h.eachClaim(func(at world.PodAddr, by ref.Object, node string) {
			if node != "" && !h.led[at][by][node] {
				t.Errorf("%v is not led to %s for %v: cleared %t, former claims %v", at, node, by, h.w.Cleared(node),
					h.w.Formers(at))
			}
		})
		if len(h.asked) > 0 || !h.wake.IsZero() {
			t.Errorf("still asks %v, and wakes at %v", h.asked, h.wake)
		}
	})
}
