package egressip_test

import (
	"net/netip"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// TestOrphanBringsItsSet: an agent that starts knows attached pods before it knows its node. What it puts into sets of
// the host must have them.
func TestOrphanBringsItsSet(t *testing.T) {
	w := world.New("n1", compiletest.Config(world.LocalGateway))
	w.SetAttachment(compiletest.Attachment(compiletest.Pod(0, "n1")))
	s := compile.Full(w, all.Features())
	if len(s.NFTElems) == 0 {
		t.Fatal("the orphan is in no set of the host")
	}
	for e := range s.NFTElems.Rows() {
		if _, there := s.NFTSets.Get(plan.NFTSet{Name: e.Set}); !there {
			t.Errorf("%s has an element and is not there", e.Set)
		}
	}
}

// TestOrphanReachesNodes: what a pod without an object sends to a node gets there, as from all pods with paused egress;
// what it sends outside does not.
func TestOrphanReachesNodes(t *testing.T) {
	net := trace.Network{}
	p := compiletest.Pod(0, "n1")
	for _, node := range []string{"n1", "n2", "n3"} {
		w := compiletest.Small(node, world.SharedGateway)
		if node == p.Node {
			w.SetAttachment(compiletest.Attachment(p))
		}
		net[node] = compile.Full(w, all.Features())
	}
	c, err := trace.Read(net)
	if err != nil {
		t.Fatal(err)
	}
	for f, src := range p.IPs {
		for dst, want := range map[netip.Addr]trace.Kind{
			compiletest.Node(2).HostAddrs[f]: trace.ToHost, compiletest.EgressAddr(50)[f]: trace.Dropped,
		} {
			for _, end := range c.Walk(trace.Packet{Src: src, Dst: dst, Proto: "tcp", DstPort: 80}) {
				if end.Kind != want || want == trace.ToHost && end.Src != compiletest.Node(1).HostAddrs[f] {
					t.Errorf("%s to %s: %s\n%v", src, dst, end, end.Steps)
				}
			}
		}
	}
}

// TestStrangerIsPaused: a pod with addresses that are not in its node's subnets, which have changed, sends nothing
// outside, and its EgressIP's problem says so. In a family in which the node has no subnet yet the pod goes on.
func TestStrangerIsPaused(t *testing.T) {
	for name, c := range map[string]struct {
		subnets []netip.Prefix
		paused  int
	}{
		"the former ones": {compiletest.Node(1).Subnets, 0},
		"others":          {compiletest.Node(2).Subnets, 2},
		"another IPv4":    {append(compiletest.Node(2).Subnets[:1:1], compiletest.Node(1).Subnets[1]), 1},
		"none yet":        {nil, 0},
		"no IPv6 yet":     {compiletest.Node(2).Subnets[:1], 1},
	} {
		w := compiletest.Small("n1", world.SharedGateway)
		p := compiletest.Pod(0, "n1")
		w.SetPod(p)
		w.SetAttachment(compiletest.Attachment(p))
		w.SetNamespace(&world.Namespace{Name: p.Namespace})
		e := compiletest.EgressIP(0, "app=web", compiletest.EgressAddr(0)...)
		for _, ip := range e.IPs {
			e.Items = append(e.Items, world.Assignment{Node: "n3", IP: ip})
		}
		w.SetEgressIP(e)
		w.DelNode("n2")
		n := compiletest.Node(1)
		n.UID, n.Subnets = "again", c.subnets
		w.SetNode(n)
		s := compile.Full(w, all.Features())
		paused, told := 0, 0
		for e := range s.SetElems.Rows() {
			for _, ip := range p.IPs {
				if e.Set == egress.PausedPods(world.FamilyOf(ip)) && e.Addr == ip.String() {
					paused++
				}
			}
		}
		for x := range s.Problems.Rows() {
			if x.Reason == world.ReasonUnserved && x.Object == ref.Of(ref.EgressIP, "e0") {
				told++
			}
		}
		if paused != c.paused || told != min(c.paused, 1) {
			t.Errorf("%s: %d addresses are paused, want %d, and %d problems tell", name, paused, c.paused, told)
		}
	}
}
