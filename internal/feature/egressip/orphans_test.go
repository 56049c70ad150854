package egressip_test

import (
	"net/netip"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
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
