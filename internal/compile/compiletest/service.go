package compiletest

import (
	"fmt"
	"net/netip"
	"time"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/world"
)

// RandomService is Service s<i>, with addresses, policies and endpoints by chance. Some ask for what others ask for, or
// for what is a node's.
func RandomService(t *rapid.T, i int) *world.Service {
	asked := rapid.SampledFrom([]netip.Addr{V4(192, 0, 2, 1), V4(192, 0, 2, 2), Primary(2),
		netip.MustParseAddr("2001:db8::1")})
	s := &world.Service{
		Namespace: "default", Name: fmt.Sprint("s", i), UID: fmt.Sprint("uid-s", i),
		Created:         time.Unix(int64(rapid.IntRange(0, 2).Draw(t, "created")), 0),
		ClusterIPs:      []netip.Addr{V4(10, 96, 1, i), world.Nth(netip.MustParsePrefix("fd00:10:96::/112"), 0x100+i)},
		LoadBalancerIPs: rapid.SliceOfN(asked, 0, 2).Draw(t, "load balancer"), ExternalIPs: rapid.SliceOfN(asked, 0,
			1).Draw(t, "external IPs"),
		ExternalLocal: rapid.Bool().Draw(t, "external local"), InternalLocal: rapid.Bool().Draw(t, "internal local"),
		Affinity: rapid.SampledFrom([]int{0, 10800}).Draw(t, "affinity"), HealthCheckPort: uint16(30900 + i),
	}
	for j, protocol := range []string{"tcp", "udp"} {
		s.Ports = append(s.Ports, world.ServicePort{
			Protocol: protocol, Port: rapid.SampledFrom([]uint16{80, 80, 80, 22}).Draw(t, "port"),
			NodePort:  rapid.SampledFrom([]uint16{0, 30080, uint16(30100 + 10*j + i)}).Draw(t, "node port"),
			Endpoints: drawEndpoints(t),
		})
	}
	return s
}

// drawEndpoints are pods and hosts of all nodes, sorted.
func drawEndpoints(t *rapid.T) []world.Endpoint {
	var out []world.Endpoint
	for _, f := range []int{0, 1} {
		for i := 1; i <= 3; i++ {
			for _, ip := range []netip.Addr{PodIPs(i, i)[f], Node(i).HostAddrs[f]} {
				if rapid.Bool().Draw(t, "endpoint") {
					ready := rapid.Bool().Draw(t, "ready")
					out = append(out, world.Endpoint{
						AddrPort: netip.AddrPortFrom(ip, 8080), Node: fmt.Sprint("n", i),
						Ready: ready, Serving: ready || rapid.Bool().Draw(t, "serving"), Terminating: !ready &&
							rapid.Bool().Draw(t, "terminating"),
					})
				}
			}
		}
	}
	return out
}
