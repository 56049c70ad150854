package explain

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// TestScopeOfServiceInNetwork: a Service of a namespace with its own network leads to the addresses that its pods have
// there, and not to those that its EndpointSlices name.
func TestScopeOfServiceInNetwork(t *testing.T) {
	w := compiletest.Small("", world.SharedGateway)
	inDefault, inNetwork := netip.MustParseAddr("10.244.2.77"), netip.MustParseAddr("10.128.2.7")
	w.SetNetwork(&world.Network{Name: "blue", ID: 1, Namespaces: []string{"tenant"},
		Subnets: []world.ClusterSubnet{{CIDR: netip.MustParsePrefix("10.128.0.0/16"), NodeLen: 24}}})
	w.SetNamespace(&world.Namespace{Name: "tenant", OwnNetwork: true})
	n := compiletest.Node(2)
	n.Further = map[string]world.NodeNetwork{"blue": {Subnets: []netip.Prefix{netip.MustParsePrefix("10.128.2.0/24")}}}
	w.SetNode(n)
	of := func(name, node string, ip, own netip.Addr) *world.Pod {
		return &world.Pod{Namespace: "tenant", Name: name, UID: name, Node: node, IPs: []netip.Addr{ip},
			Confirmed: true, Running: true,
			Further: []world.Interface{{Network: "blue", MAC: world.MAC(own), IPs: []netip.Addr{own}}}}
	}
	from := of("from", "n1", netip.MustParseAddr("10.244.1.76"), netip.MustParseAddr("10.128.1.6"))
	w.SetPod(from)
	w.SetPod(of("web", "n2", inDefault, inNetwork))
	endpoint := func(ip netip.Addr, pod string) world.Endpoint {
		return world.Endpoint{AddrPort: netip.AddrPortFrom(ip, 8080), Pod: pod, Node: "n2", Ready: true, Serving: true}
	}
	host, former := compiletest.Primary(2), netip.MustParseAddr("10.244.2.78")
	vip := netip.MustParseAddr("10.96.0.88")
	w.SetService(&world.Service{Namespace: "tenant", Name: "web", UID: "web", ClusterIPs: []netip.Addr{vip},
		Ports: []world.ServicePort{{Protocol: "tcp", Port: 80, Endpoints: []world.Endpoint{endpoint(inDefault, "web"),
			endpoint(former, "web"), endpoint(host, "")}}}})
	s, err := scopeOf(all.ServedKinds(), w, from, trace.Packet{Dst: vip, Proto: "tcp", DstPort: 80})
	if err != nil {
		t.Fatal(err)
	}
	for ip, want := range map[netip.Addr]bool{inNetwork: true, host: true, inDefault: false, former: false} {
		if s.at[ip] != want {
			t.Errorf("the packet may end at %s: %v, want %v", ip, s.at[ip], want)
		}
	}
	if want := []string{"tenant/from", "tenant/web"}; !slices.Equal(s.pods, want) {
		t.Errorf("pods %q, want %q", s.pods, want)
	}
}
