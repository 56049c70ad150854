package all_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// blueNames are those of blue, whose node subnets are 10.128.<node>.0/24 and fd00:128:0:<node>::/64.
var blueNames = plan.Names{Network: "blue", ID: 1}

// TestWaysOutOfANetwork: where packets of a pod of a network beside the default one go, and what comes to it.
func TestWaysOutOfANetwork(t *testing.T) {
	for _, mode := range []world.GatewayMode{world.SharedGateway, world.LocalGateway} {
		c := networkCluster(t, mode)
		for _, f := range []world.Family{world.V4, world.V6} {
			pod := blueIPs(1, 1)[f]
			for to, want := range waysOutOfBlue(f) {
				p := trace.Packet{Src: pod, Dst: netip.MustParseAddr(to), Proto: "tcp", SrcPort: 40000, DstPort: 53,
					Network: blueNames}
				if have := trace.Sentences(c.Walk(p)); have != want {
					t.Errorf("%s: %s to %s: %s\nwant %s\n%v", mode, pod, to, have, want, c.Walk(p))
				}
			}
			for _, to := range []string{pod.String(), [...]string{"169.254.0.11", "fd69::1:b"}[f]} {
				p := trace.Packet{Src: compiletest.PodIPs(2, 1)[f], Dst: netip.MustParseAddr(to), Proto: "tcp",
					SrcPort: 40000, DstPort: 80}
				for _, end := range c.Walk(p) {
					if end.Kind == trace.ToPod {
						t.Errorf("%s: a pod of the default network reaches %s: %v", mode, to, end)
					}
				}
			}
		}
	}
}

// waysOutOfBlue are the ends of what its pod on n1 sends, by destination.
func waysOutOfBlue(f world.Family) map[string]string {
	pod, masquerade := blueIPs(1, 1)[f].String(), [...]string{"169.254.0.11", "fd69::1:b"}[f]
	node, other := compiletest.Node(1).Primary[f].Addr().String(), compiletest.Node(2).Primary[f].Addr().String()
	management := world.Nth(compiletest.Node(1).Subnets[f], 2).String()
	peer, dns := blueIPs(2, 4)[f].String(), compiletest.PodIPs(3, 2)[f].String()
	isolated := "dropped at n1: policy networks/isolated/" + f.String()
	return map[string]string{
		[...]string{"203.0.113.9", "2001:db8::9"}[f]: "outside by n1 as " + node,
		peer:  "pod " + peer + " at n2 as " + pod,
		node:  "host " + node + " at n1 as " + masquerade,
		other: "host " + other + " at n2 as " + node,
		[...]string{"10.96.0.10", "fd00:10:96::a"}[f]: "pod " + dns + " at n2 as " + management,
		[...]string{"10.96.0.1", "fd00:10:96::1"}[f]:  "host " + node + " at n1 as " + masquerade,
		compiletest.PodIPs(2, 1)[f].String():          isolated,
		compiletest.PodIPs(1, 1)[f].String():          isolated, // itself, in the default network
		management:                                    isolated,
		[...]string{"169.254.0.13", "fd69::1:d"}[f]:   isolated, // another network
	}
}

// networkCluster is the plans of three nodes with blue. Pod 1 on n1 and pod 4 on n2 are in it. Pod 2 on n1 and pod 3
// on n2, which serves DNS, are not.
func networkCluster(t *testing.T, mode world.GatewayMode) *trace.Cluster {
	t.Helper()
	plans := trace.Network{}
	for _, self := range []string{"n1", "n2", "n3"} {
		w := blueWorld(self, mode)
		plans[self] = compile.Full(w, all.Features())
	}
	c, err := trace.Read(plans)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// blueWorld is a node's world of it.
func blueWorld(self string, mode world.GatewayMode) *world.World {
	w := compiletest.Small(self, mode)
	w.SetNamespace(&world.Namespace{Name: "ns1", OwnNetwork: true})
	w.SetNetwork(&world.Network{Name: "blue", ID: 1, Namespaces: []string{"ns1"}, Join: w.Config.JoinSubnets,
		Transit: w.Config.TransitSubnets,
		Subnets: []world.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.128.0.0/16"), NodeLen: 24},
			{CIDR: netip.MustParsePrefix("fd00:128::/48"), NodeLen: 64}}})
	for i := 1; i <= 3; i++ {
		n := compiletest.Node(i)
		n.Further = map[string]world.NodeNetwork{"blue": {Subnets: blueSubnets(i)}}
		w.SetNode(n)
	}
	for i, on := range map[int]int{1: 1, 2: 1, 3: 2, 4: 2} {
		node := fmt.Sprint("n", on)
		p := compiletest.Pod(i, node)
		if i == 1 || i == 4 {
			ips := blueIPs(on, i)
			p.Further = []world.Interface{{Network: "blue", MAC: world.MAC(ips[0]), IPs: ips}}
		}
		w.SetPod(p)
		if node == self {
			w.SetAttachment(compiletest.Attachment(p))
		}
	}
	addOpenServices(w)
	return w
}

func blueSubnets(node int) []netip.Prefix {
	return []netip.Prefix{netip.PrefixFrom(compiletest.V4(10, 128, node, 0), 24),
		netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 0, 1, 0x28, 7: byte(node)}), 64)}
}

// blueIPs are the addresses of pod i on a node.
func blueIPs(node, i int) []netip.Addr {
	s := blueSubnets(node)
	return []netip.Addr{world.Nth(s[0], 10+i), world.Nth(s[1], 10+i)}
}

// addOpenServices adds those that pods of all networks reach: the API server, on n1's host, and DNS, pod 3 on n2.
func addOpenServices(w *world.World) {
	pods, primary := compiletest.PodIPs(3, 2), compiletest.Node(1).Primary
	addService(w, world.APIServers, []string{"10.96.0.1", "fd00:10:96::1"}, "n1", primary[0].Addr(), primary[1].Addr())
	addService(w, "kube-system/kube-dns", []string{"10.96.0.10", "fd00:10:96::a"}, "n2", pods...)
}

func addService(w *world.World, key string, ips []string, node string, endpoints ...netip.Addr) {
	namespace, name, _ := strings.Cut(key, "/")
	s := &world.Service{Namespace: namespace, Name: name, Ports: []world.ServicePort{{Protocol: "tcp", Port: 53}}}
	for i, ip := range endpoints {
		s.ClusterIPs = append(s.ClusterIPs, netip.MustParseAddr(ips[i]))
		s.Ports[0].Endpoints = append(s.Ports[0].Endpoints, world.Endpoint{AddrPort: netip.AddrPortFrom(ip, 5353),
			Node: node, Ready: true, Serving: true})
	}
	w.SetService(s)
}
