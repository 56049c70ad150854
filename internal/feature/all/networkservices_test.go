package all_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// TestIntoANetwork: where connections from outside to a Service of blue go, at node n1, which has one of its pods, n2,
// which has the other one, and n3, which has none.
func TestIntoANetwork(t *testing.T) {
	client := []netip.Addr{netip.MustParseAddr("172.18.0.100"), netip.MustParseAddr("fc00:f853:ccd:e793::100")}
	for _, mode := range []world.GatewayMode{world.SharedGateway, world.LocalGateway} {
		for _, local := range []bool{false, true} {
			c := serviceCluster(t, mode, local)
			for _, f := range []world.Family{world.V4, world.V6} {
				for i, node := range []string{"n1", "n2", "n3"} {
					want := intoBlue(node, f, local)
					for _, to := range []netip.AddrPort{
						netip.AddrPortFrom(compiletest.Node(i + 1).Primary[f].Addr(), 30099),
						netip.AddrPortFrom(balancerIPs()[f], 80),
					} {
						p := trace.Packet{Src: client[f], Dst: to.Addr(), Proto: "tcp", SrcPort: 40000,
							DstPort: to.Port()}
						if have := c.Arrive(node, p); sortedSentences(have) != want {
							t.Errorf("%s, local %v: %s at %s: %s\nwant %s\n%v", mode, local, to, node,
								sortedSentences(have), want, have)
						}
						p.Unanswered = true
						if have := c.Arrive(node, p); sortedSentences(have) != want {
							t.Errorf("%s, local %v: %s at %s, unanswered: %s\nwant %s", mode, local, to, node,
								sortedSentences(have), want)
						}
					}
				}
			}
		}
	}
}

// TestPodsIntoANetwork: pods of the default network do not come into blue by its Services, on their own node.
func TestPodsIntoANetwork(t *testing.T) {
	for _, mode := range []world.GatewayMode{world.SharedGateway, world.LocalGateway} {
		c := serviceCluster(t, mode, false)
		for _, f := range []world.Family{world.V4, world.V6} {
			for _, to := range []netip.AddrPort{
				netip.AddrPortFrom(compiletest.Node(1).Primary[f].Addr(), 30099),
				netip.AddrPortFrom(blueService()[f], 80),
			} {
				p := trace.Packet{Src: compiletest.PodIPs(2, 1)[f], Dst: to.Addr(), Proto: "tcp", SrcPort: 40000,
					DstPort: to.Port()}
				for _, end := range c.Walk(p) {
					if end.Kind == trace.ToPod {
						t.Errorf("%s: %s: %v", mode, to, end)
					}
				}
			}
		}
	}
}

// intoBlue are the ends of a connection from outside that comes to a node.
func intoBlue(node string, f world.Family, local bool) string {
	one, two := blueIPs(1, 1)[f].String(), blueIPs(2, 4)[f].String()
	switch client := [...]string{"172.18.0.100", "fc00:f853:ccd:e793::100"}[f]; {
	case !local: // as the network's gateway router of the node
		id := map[string]int{"n1": 2, "n2": 3, "n3": 4}[node]
		as := compiletest.Config(world.SharedGateway).DefaultNetwork().JoinAddr(id, f).Addr().String()
		return "pod " + one + " at n1 as " + as + " | pod " + two + " at n2 as " + as
	case node == "n1":
		return "pod " + one + " at n1 as " + client
	case node == "n2":
		return "pod " + two + " at n2 as " + client
	}
	return "dropped at n3: rejected: host rule iifname != \"ovn-k8s-mp0\" ct state new meta l4proto tcp " +
		[...]string{"ip", "ip6"}[f] + " daddr . meta l4proto . th dport @services/refused." + f.String() +
		" reject with tcp reset"
}

func sortedSentences(ends []trace.End) string {
	all := strings.Split(trace.Sentences(ends), " | ")
	slices.Sort(all)
	return strings.Join(all, " | ")
}

func blueService() []netip.Addr {
	return []netip.Addr{netip.MustParseAddr("10.96.0.77"), netip.MustParseAddr("fd00:10:96::77")}
}

func balancerIPs() []netip.Addr {
	return []netip.Addr{netip.MustParseAddr("172.18.0.200"), netip.MustParseAddr("fc00:f853:ccd:e793::200")}
}

// serviceCluster is networkCluster with a Service in blue's namespace, of both of its pods.
func serviceCluster(t *testing.T, mode world.GatewayMode, local bool) *trace.Cluster {
	t.Helper()
	plans := trace.Network{}
	for _, self := range []string{"n1", "n2", "n3"} {
		w := blueWorld(self, mode)
		s := &world.Service{Namespace: "ns1", Name: "web", LoadBalancer: true, ClusterIPs: blueService(),
			LoadBalancerIPs: balancerIPs(), ExternalLocal: local,
			Ports: []world.ServicePort{{Protocol: "tcp", Port: 80, NodePort: 30099}}}
		for pod, node := range map[int]int{1: 1, 4: 2} {
			for _, ip := range compiletest.PodIPs(pod, node) {
				e := world.Endpoint{AddrPort: netip.AddrPortFrom(ip, 8080), Pod: fmt.Sprint("p", pod),
					Node: fmt.Sprint("n", node), Ready: true, Serving: true}
				s.Ports[0].Endpoints = append(s.Ports[0].Endpoints, e)
			}
		}
		w.SetService(s)
		plans[self] = compile.Full(w, all.Features())
	}
	c, err := trace.Read(plans)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
