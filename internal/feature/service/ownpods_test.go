package service_test

import (
	"net/netip"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// TestOwnPodsByOtherWays: in shared gateway mode, who comes to the host with policy Local is seen as it is where the
// answers find their way.
func TestOwnPodsByOtherWays(t *testing.T) {
	noGateway := func(w *world.World) {
		h := *compiletest.Host(w.Self)
		h.Gateways = nil
		w.SetHost(&h)
	}
	network := func(w *world.World) {
		w.SetEgressService(&world.EgressService{Namespace: "default", Name: "web", UID: "uid",
			SourceIPBy: world.SourceNetwork, Table: world.RoutingTable{Number: 100}, Host: world.HostAll})
	}
	noNodePort := func(s *world.Service) { s.ExternalLocal, s.Ports[0].NodePort = true, 0 }
	for _, c := range []struct {
		name      string
		prepare   func(*world.World)
		change    func(*world.Service)
		endpoints [][]netip.Addr
		want      string
	}{
		{"no default gateway", noGateway, externalLocal, [][]netip.Addr{ownPod}, "pod OWNPOD at n1 as MANAGEMENT"},
		{"no node port", func(*world.World) {}, noNodePort, [][]netip.Addr{ownPod}, "pod OWNPOD at n1 as MANAGEMENT"},
		{"a network's", network, externalLocal, [][]netip.Addr{ownPod}, "pod OWNPOD at n1 as CLIENT"},
		{"a network's, own host, too", network, externalLocal, [][]netip.Addr{ownHost, ownPod},
			"host OWNHOST at n1 as CLIENT | pod OWNPOD at n1 as CLIENT"},
	} {
		net := webIn(t, world.SharedGateway, c.prepare, c.change, c.endpoints...)
		for f, from := range client {
			ends := net.WalkIntoHost("n1", "eth1", trace.Packet{Src: from, Dst: balancer[f], Proto: "tcp",
				SrcPort: 40000, DstPort: 80})
			if have := rejectedOr(trace.Sentences(ends)); have != named(c.want, f) {
				t.Errorf("%s: %s, want %s\n%v", c.name, have, named(c.want, f), ends)
			}
		}
	}
}

// TestOwnPodsAnswersGoNowhereElse: what has the source of pods' answers and is none of them does not get out, nor does
// what is for the port of nodes' tunnels, whatever its source.
func TestOwnPodsAnswersGoNowhereElse(t *testing.T) {
	for _, mode := range []world.GatewayMode{world.SharedGateway, world.LocalGateway} {
		net := webOf(t, mode, externalLocal, ownPod)
		for f, to := range client {
			own := []netip.Addr{netip.MustParseAddr("169.254.169.3"), netip.MustParseAddr("fd69::3")}[f]
			for _, link := range []string{"breth0", plan.DefaultNames().ManagementPort()} {
				ends := net.WalkIntoHost("n1", link, trace.Packet{Src: own, Dst: to, Proto: "udp", SrcPort: 30080,
					DstPort: 40000})
				if len(ends) != 1 || ends[0].Kind != trace.Dropped {
					t.Errorf("%s gateway, by %s: %s, want dropped", mode, link, trace.Sentences(ends))
				}
			}
		}
	}
	if plan.ForgedTunnel.Priority() <= plan.HostAnswer.Priority() {
		t.Error("the bridge asks for the port of tunnels after it has given answers to the host")
	}
}
