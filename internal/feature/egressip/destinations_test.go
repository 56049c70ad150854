package egressip_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// Destinations of a simulation whose EgressIPs have selectors of traffic: what all of them have, what one of them has
// at times, and what none has ever.
var (
	always    = func() *world.Traffic { return compiletest.Traffic(0, "x", "172.20.0.0/16", "fd00:20::/32") }
	toAlways  = [2]string{"172.20.0.5", "fd00:20::5"}
	toAtTimes = [2]string{"172.21.0.5", "fd00:21::5"}
	toNever   = [2]string{"172.30.0.5", "fd00:30::5"}
)

// TestNoWrongSourceByDestination: as TestNoWrongSource, with EgressIPs that have networks, which change. To what always
// is one of theirs, pods have an egress IP or send nothing; to what never is, they have their node's address and lose
// no packet; to what is at times, either.
func TestNoWrongSourceByDestination(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(t, true)
		s.checks = s.checkByDestination
		s.run(t)
	})
}

// TestNoWrongSourceBetweenPasses: as TestNoWrongSourceByDestination, where it matters most. All nodes know all changes,
// and every round of each is walked when its steering is new and its translation is not, and the other way round.
func TestNoWrongSourceBetweenPasses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(t, true)
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			s.change(t)
			for _, name := range rapid.Permutation([]string{"n1", "n2", "n3"}).Draw(t, "order") {
				s.walkedRound(t, name)
			}
		}
	})
}

// change is one of those that bring pods from one EgressIP, or holder, to another.
func (s *simulation) change(t *rapid.T) {
	name := rapid.SampledFrom([]string{"n1", "n2", "n3"}).Draw(t, "node")
	rapid.SampledFrom([]func(){
		func() { s.assign(t) }, func() { s.respec(t) }, func() { s.relabel(t) }, func() { s.redirect(t) },
		func() { s.assignOlder(rapid.IntRange(0, 3).Draw(t, "older")) }, func() { s.letGo(t) },
		func() { s.startPod(name) }, func() { s.end(t, name) },
	}).Draw(t, "change")()
}

// walkedRound is a whole one of a node that knows all, and walks packets between its passes.
func (s *simulation) walkedRound(t *rapid.T, name string) {
	n := s.nodes[name]
	n.apply(len(n.todo))
	n.learn(s, len(s.history))
	r := n.round(t, s)
	n.todo = r.grow
	n.apply(len(n.todo))
	former := n.have.Snapshot()
	for _, translation := range []bool{false, true} {
		n.mix(former, r.want, func(of bool) bool { return of == translation })
		s.checkByDestination(t)
	}
	n.todo = append([]func(){r.applied}, r.shrink...)
	n.apply(len(n.todo))
	s.checkByDestination(t)
	n.tell(s, name)
}

// TestServedByDestinationInTheEnd: once nothing is under way any more, pods get through to every network.
func TestServedByDestinationInTheEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(t, true)
		s.run(t)
		s.comesToRest(t)
		plans := s.plans(t)
		for name, n := range s.nodes {
			for _, key := range n.world.Attachments() {
				for _, to := range [][2]string{toAlways, toAtTimes, toNever} {
					a := n.world.Attachment(key)
					for _, by := range a.Interfaces() {
						for _, end := range walkByTo(plans, by, to) {
							if (end.Kind == trace.Outside) != (by.Network == primaryOf(a)) {
								t.Fatalf("pod %s on %s to %s: %s\n%v", key, name, to, end, end.Steps)
							}
						}
					}
				}
			}
		}
		s.checkByDestination(t)
	})
}

// TestSuccessorOfAnOrphan: a pod with the address of one that was deleted by force, and ran on until it was detached,
// loses no packet to where no EgressIP serves it.
func TestSuccessorOfAnOrphan(t *testing.T) {
	t.Parallel()
	const pod = "ns0/p0"
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(t, true)
		n, addresses := s.nodes["n1"], s.running[pod].IPs
		delete(s.running, pod)
		s.happens(func(w *world.World) { w.DelPod(pod) })
		s.round(t, "n1")
		s.detachEnded("n1")
		s.startPod("n1")
		if !slices.Equal(s.running["ns0/p3"].IPs, addresses) {
			t.Fatalf("the successor has %v, want %v", s.running["ns0/p3"].IPs, addresses)
		}
		n.begin(t, s)
		for len(n.todo) > 0 {
			n.apply(1)
			s.checkByDestination(t)
		}
		if !n.ready["ns0/p3"] {
			t.Fatal("the successor does not run")
		}
	})
}

func (s *simulation) checkByDestination(t *rapid.T) {
	plans := s.plans(t)
	for name, n := range s.nodes {
		for _, key := range n.world.Attachments() {
			a := n.world.Attachment(key)
			if !n.ready[key] {
				continue
			}
			own := compiletest.Host(name).Primary
			isOwn := func(ip netip.Addr) bool { return ip == own[0].Addr() || ip == own[1].Addr() }
			known := n.world.Pod(key) != nil // else it is an orphan, which sends nothing
			for _, x := range []struct {
				to    [2]string
				right func(trace.End) bool
			}{
				{toAlways, func(e trace.End) bool { return e.Kind == trace.Dropped || slices.Contains(right, e.Src) }},
				{toAtTimes, func(e trace.End) bool {
					return e.Kind == trace.Dropped || slices.Contains(addresses, e.Src) ||
						slices.Contains(changed, e.Src) || isOwn(e.Src)
				}},
				{toNever, func(e trace.End) bool {
					return e.Kind == trace.Dropped && !known || e.Kind == trace.Outside && isOwn(e.Src)
				}},
			} {
				for _, by := range a.Interfaces() {
					for _, end := range walkByTo(plans, by, x.to) {
						if by.Network != primaryOf(a) && end.Kind != trace.Dropped ||
							by.Network == primaryOf(a) && !x.right(end) {
							t.Fatalf("pod %s on %s to %s by %s: %s\n%v", key, name, x.to, by.Network, end, end.Steps)
						}
					}
				}
			}
		}
	}
}

// redirect changes the networks that e0 has beside those that all have, also to one that contains all of these.
func (s *simulation) redirect(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "no more networks") == 0 {
		s.happens(func(w *world.World) { w.DelTraffic("t1") })
		return
	}
	o := compiletest.Traffic(1, rapid.SampledFrom([]string{"y", "nobody"}).Draw(t, "for whom"),
		rapid.SampledFrom([][]string{{"172.21.0.0/16"}, {"fd00:21::/32"}, {"172.20.0.0/15", "fd00:20::/31"},
			{"172.20.0.0/24", "172.21.0.0/24"}}).Draw(t, "networks")...)
	s.happens(func(w *world.World) { w.SetTraffic(o) })
}

// withTraffic gives an EgressIP its selector of traffic, where EgressIPs have such.
func (s *simulation) withTraffic(e *world.EgressIP) *world.EgressIP {
	if e.Traffic = nil; s.selective {
		to := "x"
		if e.Name == "e0" {
			to = "x,y"
		}
		selector, err := labels.Parse("to in (" + to + ")")
		if err != nil {
			panic(err) // a test's own text
		}
		e.Traffic = selector
	}
	return e
}

// passes are the changes of the Northbound as a packet can meet them: OVS takes those of one transaction at one time,
// and a packet goes through the datapath in several passes, of which the cache has each as it was or as it is. Where a
// packet goes, and that it is marked, is one; how it is translated is another.
func (n *agent) passes(want *plan.State) []func() {
	former := n.have.Snapshot()
	changed := map[bool]bool{}
	pass := func(translates bool) func() {
		return func() {
			changed[translates] = true
			n.mix(former, want, func(translation bool) bool { return changed[translation] })
		}
	}
	return []func(){pass(false), pass(true)}
}

// mix has the Northbound hold what another state has of the translation, and of all else, where that is new, and what a
// former one had where it is not. The sets of both are there: no flow is made of a rule before the set that it names.
func (n *agent) mix(former, want *plan.State, isNew func(translation bool) bool) {
	mixed := plan.New()
	for state, is := range map[*plan.State]bool{former: false, want: true} {
		for k, v := range state.NB.Rows() {
			if k.Table == "Address_Set" || isNew(k.Table == "NAT") == is {
				mixed.NB.Put(plan.Owner{}, k, v)
			}
		}
		for k := range state.SetElems.Rows() {
			if isNew(strings.Contains(k.Set, "/pods.")) == is {
				mixed.SetElems.Put(plan.Owner{}, k, plan.None{})
			}
		}
	}
	n.have.NB, n.have.SetElems, n.walked = mixed.NB, mixed.SetElems, false
}
