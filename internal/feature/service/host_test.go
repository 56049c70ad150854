package service_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// Who is an endpoint of Service default/web, of each family.
var (
	ownPod   = compiletest.PodIPs(1, 1)
	otherPod = compiletest.PodIPs(2, 2)
	ownHost  = compiletest.Node(1).HostAddrs[:2]
	otherOne = compiletest.Node(2).HostAddrs[:2]
)

// client is outside, of each family.
var client = []netip.Addr{netip.MustParseAddr("172.18.0.100"), netip.MustParseAddr("fc00:f853:ccd:e793::100")}

var balancer = []netip.Addr{netip.MustParseAddr("192.0.2.8"), netip.MustParseAddr("2001:db8::8")}

// webOf makes the plans of a cluster with one Service, of node port 30080 and a load balancer's addresses.
func webOf(
	t *testing.T, mode world.GatewayMode, change func(*world.Service), endpoints ...[]netip.Addr,
) *trace.Cluster {
	t.Helper()
	return webIn(t, mode, func(*world.World) {}, change, endpoints...)
}

// webIn does it where each node's world has been prepared.
func webIn(
	t *testing.T, mode world.GatewayMode, prepare func(*world.World), change func(*world.Service),
	endpoints ...[]netip.Addr,
) *trace.Cluster {
	t.Helper()
	s := &world.Service{
		Namespace: "default", Name: "web", ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.10"),
			netip.MustParseAddr("fd00:10:96::10")},
		LoadBalancerIPs: balancer, Ports: []world.ServicePort{{Protocol: "tcp", Port: 80, NodePort: 30080}},
	}
	for _, ips := range endpoints {
		for _, ip := range ips {
			s.Ports[0].Endpoints = append(s.Ports[0].Endpoints, world.Endpoint{AddrPort: netip.AddrPortFrom(ip, 8080),
				Ready: true})
		}
	}
	if change != nil {
		change(s)
	}
	plans := trace.Network{}
	for i := 1; i <= 3; i++ {
		w := compiletest.Small(fmt.Sprint("n", i), mode)
		prepare(w)
		for j := 1; j <= 3; j++ {
			p := compiletest.Pod(j, fmt.Sprint("n", j))
			w.SetPod(p)
			if i == j {
				w.SetAttachment(compiletest.Attachment(p))
			}
		}
		w.SetService(s)
		plans[w.Self] = compile.Full(w, all.Features())
	}
	return readPlans(t, plans)
}

// readPlans has plans read for walking.
func readPlans(t *testing.T, plans trace.Network) *trace.Cluster {
	t.Helper()
	c, err := trace.Read(plans)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func externalLocal(s *world.Service) { s.ExternalLocal = true }

// TestConnectionsThatComeToTheHost: what the host of n1 does with connections from outside, by the gateway bridge, to
// its node port and to the load balancer's address: which endpoint, and with which source.
func TestConnectionsThatComeToTheHost(t *testing.T) {
	for _, c := range []struct {
		name      string
		mode      world.GatewayMode
		change    func(*world.Service)
		endpoints [][]netip.Addr
		want      string // kind, destination, source; the first of a slice is its address of the family
	}{
		{"Cluster, pods", world.LocalGateway, nil, [][]netip.Addr{ownPod}, "pod OWNPOD at n1 as MANAGEMENT"},
		{"Cluster, own host", world.LocalGateway, nil, [][]netip.Addr{ownHost}, "host OWNHOST at n1 as CLIENT"},
		{"Cluster, another host", world.LocalGateway, nil, [][]netip.Addr{otherOne}, "host OTHERHOST at n2 as OWNHOST"},
		{"Cluster, all kinds", world.LocalGateway, nil, [][]netip.Addr{ownPod, ownHost, otherOne},
			"host OWNHOST at n1 as CLIENT | host OTHERHOST at n2 as OWNHOST | pod OWNPOD at n1 as MANAGEMENT"},
		{"Cluster, nobody", world.LocalGateway, nil, nil, "rejected"},
		{"Local, pods", world.LocalGateway, externalLocal, [][]netip.Addr{ownPod, otherPod},
			"pod OWNPOD at n1 as CLIENT"},
		{"Local, own host", world.LocalGateway, externalLocal, [][]netip.Addr{ownHost, otherPod},
			"host OWNHOST at n1 as CLIENT"},
		{"Local, own host and pod", world.LocalGateway, externalLocal, [][]netip.Addr{ownHost, ownPod, otherPod},
			"host OWNHOST at n1 as CLIENT | pod OWNPOD at n1 as CLIENT"},
		{"Local, elsewhere", world.LocalGateway, externalLocal, [][]netip.Addr{otherPod, otherOne}, "rejected"},
		{"Cluster, shared, own host", world.SharedGateway, nil, [][]netip.Addr{ownHost, ownPod},
			"host OWNHOST at n1 as CLIENT | pod OWNPOD at n1 as MANAGEMENT"},
		{"Local, shared, pods", world.SharedGateway, externalLocal, [][]netip.Addr{ownPod, otherPod},
			"pod OWNPOD at n1 as CLIENT"},
		{"Local, shared, elsewhere", world.SharedGateway, externalLocal, [][]netip.Addr{otherPod, otherOne}, "rejected"},
		{"Local, shared, own host", world.SharedGateway, externalLocal, [][]netip.Addr{ownHost, ownPod},
			"host OWNHOST at n1 as CLIENT"},
	} {
		net := webOf(t, c.mode, c.change, c.endpoints...)
		for f, from := range client {
			for _, to := range []netip.AddrPort{netip.AddrPortFrom(ownHost[f], 30080), netip.AddrPortFrom(balancer[f],
				80)} {
				ends := net.WalkIntoHost("n1", "breth0", trace.Packet{Src: from, Dst: to.Addr(), Proto: "tcp",
					SrcPort: 40000, DstPort: to.Port()})
				if have := rejectedOr(trace.Sentences(ends)); have != named(c.want, f) {
					t.Errorf("%s, to %s: %s, want %s\n%v", c.name, to, have, named(c.want, f), ends)
				}
			}
		}
	}
}

// rejectedOr leaves out who rejects.
func rejectedOr(sentences string) string {
	if strings.Contains(sentences, "rejected: ") {
		return "rejected"
	}
	return sentences
}

func named(text string, f int) string {
	management := []string{"10.244.1.2", "fd00:10:244:1::2"}
	out := strings.NewReplacer("OWNPOD", ownPod[f].String(), "OTHERPOD", otherPod[f].String(), "OWNHOST",
		ownHost[f].String(), "OTHERHOST", otherOne[f].String(),
		"CLIENT", client[f].String(), "MANAGEMENT", management[f]).Replace(text)
	return out
}

// TestConnectionsOfTheHost: what a process of n1 reaches, and as whom. The policy Local is not for it.
func TestConnectionsOfTheHost(t *testing.T) {
	for _, c := range []struct {
		name      string
		change    func(*world.Service)
		endpoints [][]netip.Addr
		want      []string // by cluster IP; by node port and load balancer
	}{
		{"pods", nil, [][]netip.Addr{otherPod}, []string{"pod OTHERPOD at n2 as MANAGEMENT",
			"pod OTHERPOD at n2 as MANAGEMENT"}},
		{"Local, pods elsewhere", externalLocal, [][]netip.Addr{otherPod}, []string{"pod OTHERPOD at n2 as MANAGEMENT",
			"pod OTHERPOD at n2 as MANAGEMENT"}},
		{"own host", nil, [][]netip.Addr{ownHost}, []string{"host OWNHOST at n1 as OWNHOST",
			"host OWNHOST at n1 as OWNHOST"}},
		{"Local, own host and pod", externalLocal, [][]netip.Addr{ownHost, ownPod},
			[]string{"host OWNHOST at n1 as OWNHOST | pod OWNPOD at n1 as MANAGEMENT",
				"host OWNHOST at n1 as OWNHOST | pod OWNPOD at n1 as MANAGEMENT"}},
		{"another host", nil, [][]netip.Addr{otherOne}, []string{"host OTHERHOST at n2 as OWNHOST",
			"host OTHERHOST at n2 as OWNHOST"}},
		{"nobody", nil, nil, []string{"rejected", "rejected"}},
	} {
		for _, mode := range []world.GatewayMode{world.LocalGateway, world.SharedGateway} {
			net := webOf(t, mode, c.change, c.endpoints...)
			for f := range client {
				service := []netip.Addr{netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("fd00:10:96::10")}[f]
				for i, to := range []netip.AddrPort{netip.AddrPortFrom(service, 80), netip.AddrPortFrom(ownHost[f],
					30080), netip.AddrPortFrom(balancer[f], 80)} {
					ends := net.WalkFromHost("n1", trace.Packet{Dst: to.Addr(), Proto: "tcp", SrcPort: 40000,
						DstPort: to.Port()})
					if have, want := rejectedOr(trace.Sentences(ends)), named(c.want[min(i, 1)], f); have != want {
						t.Errorf("%s, %s gateway, to %s: %s, want %s\n%v", c.name, mode, to, have, want, ends)
					}
				}
			}
		}
	}
}

// TestPolicyLocalKeepsTheHostsAddress: a process of n1 that asks for a Service whose endpoints are all on another node
// asks for that node's port.
func TestPolicyLocalKeepsTheHostsAddress(t *testing.T) {
	onNode := func(name string) func(*world.Service) {
		return func(s *world.Service) {
			s.ExternalLocal = true
			for i := range s.Ports[0].Endpoints {
				s.Ports[0].Endpoints[i].Node = name
			}
		}
	}
	for _, c := range []struct {
		name, node string
		endpoint   []netip.Addr
		want       string
	}{
		{"a pod elsewhere", "n2", otherPod, "pod OTHERPOD at n2 as OWNHOST"},
		{"a pod here", "n1", ownPod, "pod OWNPOD at n1 as MANAGEMENT"},
		{"a pod of a node that is not known", "n9", otherPod, "pod OTHERPOD at n2 as MANAGEMENT"},
	} {
		for _, mode := range []world.GatewayMode{world.LocalGateway, world.SharedGateway} {
			net := webOf(t, mode, onNode(c.node), c.endpoint)
			for f := range client {
				ends := net.WalkFromHost("n1", trace.Packet{Dst: ownHost[f], Proto: "tcp", SrcPort: 40000,
					DstPort: 30080})
				if have, want := rejectedOr(trace.Sentences(ends)), named(c.want, f); have != want {
					t.Errorf("%s, %s gateway: %s, want %s\n%v", c.name, mode, have, want, ends)
				}
			}
		}
	}
}
