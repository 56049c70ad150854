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
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(t, true)
		s.checks = s.checkByDestination
		s.run(t)
	})
}

// TestServedByDestinationInTheEnd: once nothing is under way any more, pods get through to every network.
func TestServedByDestinationInTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(t, true)
		s.run(t)
		s.comesToRest(t)
		plans := s.plans(t)
		for name, n := range s.nodes {
			for _, key := range n.world.Attachments() {
				for _, to := range [][2]string{toAlways, toAtTimes, toNever} {
					for _, end := range walkTo(plans, n.world.Attachment(key), to) {
						if (end.Kind != trace.Outside) != inBlue(n.world.Attachment(key)) {
							t.Fatalf("pod %s on %s to %s: %s\n%v", key, name, to, end, end.Steps)
						}
					}
				}
			}
		}
		s.checkByDestination(t)
	})
}

func (s *simulation) checkByDestination(t *rapid.T) {
	plans := s.plans(t)
	for name, n := range s.nodes {
		for _, key := range n.world.Attachments() {
			a := n.world.Attachment(key)
			if !n.ready[key] || inBlue(a) {
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
				for _, end := range walkTo(plans, a, x.to) {
					if !x.right(end) {
						t.Fatalf("pod %s on %s to %s: %s\n%v", key, name, x.to, end, end.Steps)
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
	have := plan.New() // a copy: the rows that stood belong to the former plan
	putAll(have.NB, rows(n.have.NB))
	putAll(have.SetElems, rows(n.have.SetElems))
	n.have.NB, n.have.SetElems = have.NB, have.SetElems
	nb, elems := plan.Diff(rows(have.NB), want.NB, plan.EqualRows), plan.Diff(rows(have.SetElems), want.SetElems,
		plan.Same)
	pass := func(translates bool) func() {
		return func() {
			for k, v := range nb.Put {
				if (k.Table == "NAT") == translates {
					have.NB.Put(plan.Owner{}, k, v)
				}
			}
			for k := range nb.Del {
				if (k.Table == "NAT") == translates && k.Table != "Address_Set" {
					have.NB.Drop(plan.Owner{}, k)
				}
			}
			for k := range elems.Put {
				if strings.Contains(k.Set, "/pods.") == translates {
					have.SetElems.Put(plan.Owner{}, k, plan.None{})
				}
			}
			for k := range elems.Del {
				if strings.Contains(k.Set, "/pods.") == translates {
					have.SetElems.Drop(plan.Owner{}, k)
				}
			}
		}
	}
	for k, v := range nb.Put {
		if k.Table == "Address_Set" { // no flow is made of a rule before the set that it names is there
			have.NB.Put(plan.Owner{}, k, v)
		}
	}
	return []func(){pass(false), pass(true)}
}

// makeRoom deletes, of sets of prefixes, what overlaps that which is added: the kernel refuses the latter otherwise.
func makeRoom(have *plan.State, elems plan.Delta[plan.NFTElem, string]) {
	for k := range elems.Del {
		p, err := netip.ParsePrefix(k.Key)
		for added := range elems.Put {
			q, bad := netip.ParsePrefix(added.Key)
			if added.Set == k.Set && err == nil && bad == nil && p.Overlaps(q) {
				have.NFTElems.Drop(plan.Owner{}, k)
			}
		}
	}
}
