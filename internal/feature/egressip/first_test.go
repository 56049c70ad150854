package egressip_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
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

// TestFirstAssignment: an EgressIP that is not in force is given to nodes, taken back and given to others; holders are
// late, do not become such, fall silent or reboot, and their reports come late or never, while pods' nodes steer to
// them ahead of these. After every single row, on any node, a selected pod's packet leaves with an egress IP, or with
// its own node's address, or is dropped: none leaves with another node's address, or untranslated.
func TestFirstAssignment(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(t, false)
		s.beforeForce(t)
		s.checks = s.checkFirst
		for range rapid.IntRange(5, 60).Draw(t, "steps") {
			if rapid.IntRange(0, 3).Draw(t, "whole round") == 0 {
				s.roundByRows(t, rapid.SampledFrom([]string{"n1", "n2", "n3"}).Draw(t, "node"))
			} else {
				s.firstStep(t)
			}
			s.checkFirst(t)
		}
	})
}

// beforeForce leaves e0 alone, without a node.
func (s *simulation) beforeForce(t *rapid.T) {
	s.happens(func(w *world.World) { w.DelEgressIP("e1") })
	s.e.InForce, s.e.Items, s.e.Leaving = [2]bool{}, nil, nil
	s.wrote(s.e)
	for range 2 {
		for _, name := range []string{"n1", "n2", "n3"} {
			s.round(t, name)
		}
	}
}

func (s *simulation) firstStep(t *rapid.T) {
	name := rapid.SampledFrom([]string{"n1", "n2", "n3"}).Draw(t, "node")
	n := s.nodes[name]
	switch rapid.IntRange(0, 11).Draw(t, "what") {
	case 0, 1:
		s.assign(t)
		s.e.Leaving = nil // of what nobody held
		s.wrote(s.e)
	case 2:
		s.startPod(name)
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
		other := rapid.SampledFrom([]string{"n1", "n2", "n3"}).Draw(t, "other")
		n.world.SetTunnel(other, world.Tunnel(rapid.IntRange(0, 2).Draw(t, "state")))
	case 11:
		s.now = s.now.Add(rapid.SampledFrom(spans).Draw(t, "later"))
	}
}

// checkFirst allows a pod its node's address, too.
func (s *simulation) checkFirst(t *rapid.T) {
	plans := s.plans(t)
	for name, n := range s.nodes {
		for _, key := range n.world.Attachments() {
			a := n.world.Attachment(key)
			if !n.ready[key] {
				continue
			}
			for _, by := range a.Interfaces() {
				for _, end := range walkBy(plans, by) {
					own := end.Kind == trace.Outside && slices.Contains(compiletest.Host(name).Addrs, end.Src)
					if end.Kind != trace.Dropped && !own && !leavesRightly(a, by, end) {
						t.Fatalf("pod %s on %s by %s: %s\n%v", key, name, by.Network, end, end.Steps)
					}
				}
			}
		}
	}
}

// first is a pod on n1, and an EgressIP that n2 is given for the first time.
type first struct {
	w *world.World
	e world.EgressIP
	p *world.Pod
}

func newFirst() *first {
	s := &first{w: compiletest.Small("n1", world.SharedGateway), p: compiletest.Pod(0, "n1")}
	ip := compiletest.EgressAddr(0)[0]
	s.e = *compiletest.EgressIP(0, "", ip)
	s.e.Items = []world.Assignment{{Node: "n2", IP: ip}}
	s.w.SetNamespace(&world.Namespace{Name: s.p.Namespace})
	s.w.SetPod(s.p)
	s.w.SetAttachment(compiletest.Attachment(s.p))
	s.set(func(*world.EgressIP) {})
	return s
}

func (s *first) set(change func(*world.EgressIP)) {
	e := s.e
	change(&e)
	s.e = e
	s.w.SetEgressIP(&e)
}

func (s *first) n2Holds() {
	s.w.SetHolding(&world.Holding{Node: "n2", BootID: "boot-n2", Holds: map[string][]netip.Addr{"e0": s.e.IPs}})
}

// two gives n3 a second address.
func (s *first) two() {
	s.set(func(e *world.EgressIP) {
		e.IPs = append(e.IPs, compiletest.EgressAddr(1)[0])
		e.Items = append(e.Items, world.Assignment{Node: "n3", IP: e.IPs[1]})
	})
}

// way is where the plan leads the pod, and whether it is waited for.
func (s *first) way() string {
	p := compile.Full(s.w, all.Features())
	row, is := p.NB.Get(plan.RowID{Table: "Logical_Router_Policy", Name: "egressip/e0/v4"})
	way := "its own"
	if is {
		way = fmt.Sprint(row.Cols["action"])
	}
	for _, k := range slices.SortedFunc(maps.Keys(p.Steered), plan.Steered.Compare) {
		if k.Node == "" {
			continue
		}
		way += fmt.Sprintf(" to %s", k.Node)
		if ahead, _ := p.Steered.Get(k); bool(ahead) {
			way += " ahead"
		}
	}
	if egressip.Waiting(&s.w.View, s.p.Key()) != (ref.Object{}) {
		way += ", waiting"
	}
	return way
}

// TestFirstNeedsNoCommand: on no node does a new EgressIP on the primary network bring a row that is written by another
// command than that of the gateway bridge's flows, or that takes longer than others: no rule or set of nftables, whose
// elements are written by netlink, no port, setting, rule or address.
func TestFirstNeedsNoCommand(t *testing.T) {
	for _, mode := range []world.GatewayMode{world.SharedGateway, world.LocalGateway} {
		for _, self := range []string{"n1", "n2", "n3"} {
			for _, podNode := range []string{"n1", "n2"} { // n2 is the holder
				for _, row := range newRows(mode, self, podNode) {
					if !slices.ContainsFunc([]string{
						"nb ", "set ", "nft elem ", "route ", "flow breth0 ", "announce ", "source ", "steers ",
						"translates ", "answers ",
					}, func(kind string) bool { return strings.HasPrefix(row, kind) }) {
						t.Errorf("%s, pod on %s, node %s: %s", mode, podNode, self, row)
					}
				}
			}
		}
	}
}

// newRows are those that a node gets with EgressIPs of both families, which n2 is given, for one pod.
func newRows(mode world.GatewayMode, self, podNode string) []string {
	w, p := compiletest.Small(self, mode), compiletest.Pod(0, podNode)
	w.SetNamespace(&world.Namespace{Name: p.Namespace})
	w.SetPod(p)
	if podNode == self {
		w.SetAttachment(compiletest.Attachment(p))
	}
	before := compile.Full(w, all.Features())
	for f := range 2 {
		ip := compiletest.EgressAddr(f)[f]
		e := compiletest.EgressIP(f, "", ip)
		e.InForce, e.Items = [2]bool{}, []world.Assignment{{Node: "n2", IP: ip}}
		w.SetEgressIP(e)
	}
	var out []string
	for line := range strings.Lines(plan.DiffText(compile.Full(w, all.Features()), before)) {
		out = append(out, strings.TrimSpace(line[2:]))
	}
	return out
}

// TestSteersAhead: a node that is given an address for the first time is steered to before it says that it holds it,
// while it is alive and not overdue. A pod that starts waits for it all the same.
func TestSteersAhead(t *testing.T) {
	c := world.EgressAddress{Object: "e0", IP: compiletest.EgressAddr(0)[0]}
	for _, x := range []struct {
		name, way string
		change    func(s *first)
	}{
		{"it gets ready", "reroute to n2 ahead, waiting", func(*first) {}},
		{"it says that it is", "reroute to n2", (*first).n2Holds},
		{"it is overdue", "its own, waiting", func(s *first) { s.w.SetOverdue(c, "n2") }},
		{"another was overdue", "reroute to n2 ahead, waiting", func(s *first) { s.w.SetOverdue(c, "n3") }},
		{"it was overdue and is ready", "reroute to n2", func(s *first) { s.w.SetOverdue(c, "n2"); s.n2Holds() }},
		{"it is dying", "its own, waiting", func(s *first) { s.w.SetTunnel("n2", world.TunnelDown) }},
		{"it is unknown", "its own, waiting", func(s *first) { s.w.DelNode("n2") }},
		{"it is overdue, and dropping is asked for", "drop, waiting", func(s *first) {
			s.w.SetOverdue(c, "n2")
			s.set(func(e *world.EgressIP) { e.DropWhenUnassigned = true })
		}},
		{"in force: as in each move", "drop, waiting", func(s *first) {
			s.set(func(e *world.EgressIP) { e.InForce[world.V4] = true })
		}},
		{"another is leaving", "its own, waiting", func(s *first) {
			s.set(func(e *world.EgressIP) { e.Leaving = []world.Leaving{{Node: "n3", IP: c.IP}} })
		}},
		{"this node itself", "reroute to n1 ahead, waiting", func(s *first) {
			s.set(func(e *world.EgressIP) { e.Items = []world.Assignment{{Node: "n1", IP: c.IP}} })
		}},
		{"another address is ready", "reroute to n2 to n3 ahead, waiting", func(s *first) {
			s.two()
			s.n2Holds()
		}},
		{"one is ready and the other overdue", "reroute to n2", func(s *first) {
			s.two()
			s.n2Holds()
			s.w.SetOverdue(world.EgressAddress{Object: "e0", IP: s.e.IPs[1]}, "n3")
		}},
	} {
		s := newFirst()
		if x.change(s); s.way() != x.way {
			t.Errorf("%s: %s, want %s", x.name, s.way(), x.way)
		}
	}
}

// TestHolderThatDoesNotSayIt: who is late, refuses, or whose report does not come because the API server is silent, is
// steered to for a second; then pods keep what they had until it says that it holds the address. An EgressIP of that
// name that is created anew begins anew.
func TestHolderThatDoesNotSayIt(t *testing.T) {
	s, m, now := newFirst(), holder.Machine{Self: "n1"}, time.Unix(1_000_000, 0)
	step := func(after time.Duration) string {
		now = now.Add(after)
		p := compile.Full(s.w, all.Features())
		f := holder.Facts{View: &s.w.View, Holds: holder.HoldsOf(p), Ahead: holder.AheadOf(p)}
		r := m.Step(f, now)
		for c, node := range r.Overdue {
			s.w.SetOverdue(c, node)
		}
		if r.Wake.Sub(now) > 5*time.Second || !r.Wake.After(now) {
			t.Errorf("is to be asked again after %s", r.Wake.Sub(now))
		}
		return s.way()
	}
	for _, x := range []struct {
		what  string
		do    func()
		after time.Duration
		way   string
	}{
		{"assigned", func() {}, 0, "reroute to n2 ahead, waiting"},
		{"not yet", func() {}, 900 * time.Millisecond, "reroute to n2 ahead, waiting"},
		{"late", func() {}, 100 * time.Millisecond, "its own, waiting"},
		{"for long", func() {}, time.Minute, "its own, waiting"},
		{"says so at last", s.n2Holds, 0, "reroute to n2"},
		{"not any more", func() { s.w.DelHolding("n2") }, 0, "reroute to n2 ahead, waiting"},
		{"late again", func() {}, time.Second, "its own, waiting"},
		{"created anew", func() { s.set(func(e *world.EgressIP) { e.UID = "another" }) }, 0,
			"reroute to n2 ahead, waiting"},
		{"late, too", func() { step(0) }, time.Second, "its own, waiting"},
		{"created once more", func() { s.set(func(e *world.EgressIP) { e.UID = "a third" }) }, 0,
			"reroute to n2 ahead, waiting"},
		{"refuses: it says something, and not this", func() {
			step(0)
			s.w.SetHolding(&world.Holding{Node: "n2", BootID: "boot-n2"})
		}, 999 * time.Millisecond, "reroute to n2 ahead, waiting"},
		{"refuses for a second", func() {}, time.Millisecond, "its own, waiting"},
		{"given to another", func() {
			s.set(func(e *world.EgressIP) { e.Items = []world.Assignment{{Node: "n3", IP: e.IPs[0]}} })
		}, 0, "reroute to n3 ahead, waiting"},
	} {
		x.do()
		if have := step(x.after); have != x.way {
			t.Errorf("%s: %s, want %s", x.what, have, x.way)
		}
	}
}
