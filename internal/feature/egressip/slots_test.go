package egressip_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// TestConnectionsStay: OVN deals connections out by the rank of a next hop, which is all that it keeps of them. Whichever nodes fall silent and
// return, and wherever their addresses go meanwhile: the connections that left by an address whose node is well and named as before leave by it
// still. The pod's own node is one of those that hold an address.
func TestConnectionsStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &slots{w: map[string]*world.World{}, at: map[netip.Addr]string{}, heard: map[string]world.Tunnel{}}
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
	w     map[string]*world.World
	ips   []netip.Addr
	at    map[netip.Addr]string
	moved map[netip.Addr]bool
	heard map[string]world.Tunnel // by n1
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

// step is a node that falls silent or is heard again, or an address that moves to a node without any.
func (s *slots) step(t *rapid.T) {
	if rapid.Bool().Draw(t, "heard") {
		s.heard[rapid.SampledFrom([]string{"n2", "n3", "n4"}).Draw(t, "node")] = world.Tunnel(rapid.IntRange(0, 2).Draw(t, "tunnel"))
		return
	}
	if s.moved == nil {
		s.moved = map[netip.Addr]bool{}
	}
	ip := rapid.SampledFrom(s.ips).Draw(t, "address")
	for i := 1; i <= 4; i++ {
		if name := fmt.Sprint("n", i); !slices.Contains([]string{s.at[s.ips[0]], s.at[s.ips[1]], s.at[s.ips[2]]}, name) {
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
	for node, heard := range s.heard {
		s.w["n1"].SetTunnel(node, heard)
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
		ends := trace.Walk(net, trace.Packet{Src: compiletest.Pod(0, "n1").IPs[f], Dst: compiletest.EgressAddr(50)[f], Proto: "tcp", DstPort: 80})
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
		if !s.moved[ip] && s.heard[s.at[ip]] != world.TunnelDown && now[rank] != ip {
			t.Fatalf("connections of rank %d leave by %s, and did by %s, whose node %s is well", rank, now[rank], ip, s.at[ip])
		}
	}
}
