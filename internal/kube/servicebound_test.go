package kube

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/egret-net/egret/internal/world"
)

// TestManyAddresses: a Service is served at a bounded number of addresses of each family beside its cluster IPs, those
// of its load balancer first, and says so.
func TestManyAddresses(t *testing.T) {
	for _, x := range []struct{ ports, endpoints, balancer, external, wantBalancer, wantExternal int }{
		{1, 0, 2, 62, 2, 62}, {1, 0, 2, 63, 2, 62}, {8, 0, 60, 60, 60, 4}, {64, 0, 9, 1, 8, 0}, {128, 0, 40, 1, 4, 0},
		{2000, 0, 3, 9, 1, 0}, {8, 32, 64, 1, 64, 0}, {8, 33, 64, 1, 32, 0}, {64, 30, 1, 64, 1, 7},
		{64, 1000, 2, 2, 1, 0}, {1, 1000, 2, 62, 2, 14}, {1, 5000, 1, 1, 1, 1}, {2, 5000, 1, 1, 1, 0},
	} {
		o := loadBalancer()
		o.Spec.ExternalIPs, o.Status.LoadBalancer.Ingress = nil, nil
		for i := range x.external {
			o.Spec.ExternalIPs = append(o.Spec.ExternalIPs, fmt.Sprint("192.0.2.", i), fmt.Sprint("2001:db8::", i))
		}
		for i := range x.balancer {
			o.Status.LoadBalancer.Ingress = append(o.Status.LoadBalancer.Ingress,
				corev1.LoadBalancerIngress{IP: fmt.Sprint("203.0.113.", i)},
				corev1.LoadBalancerIngress{IP: fmt.Sprint("2001:db8:1::", i)})
		}
		have := bounded(o, x.ports, x.endpoints)
		cut := x.balancer+x.external > x.wantBalancer+x.wantExternal
		if len(have.LoadBalancerIPs) != 2*x.wantBalancer || len(have.ExternalIPs) != 2*x.wantExternal ||
			strings.Contains(strings.Join(have.Problems, ""), "is served at the first") != cut {
			t.Errorf("%+v: %d and %d, %v", x, len(have.LoadBalancerIPs), len(have.ExternalIPs), have.Problems)
		}
	}
}

// TestManyRanges: who may write a Service writes as many source ranges as an object has room for; those that say the
// same as others are one, and many leave addresses out.
func TestManyRanges(t *testing.T) {
	for _, x := range []struct{ ranges, ports, wantRanges, wantPorts, wantBalancer int }{
		{1, 64, 1, 64, 3}, {1000, 8, 1000, 8, 2}, {40_000, 1, 40_000, 1, 1}, {40_000, 2, 40_000, 1, 1},
	} {
		o := loadBalancer()
		o.Spec.ExternalIPs, o.Spec.LoadBalancerSourceRanges, o.Status.LoadBalancer.Ingress = nil, nil, nil
		for i := range x.ranges {
			r := netip.PrefixFrom(at("192.0.0.0", 2*i).Addr(), 32).String()
			o.Spec.LoadBalancerSourceRanges = append(o.Spec.LoadBalancerSourceRanges, r, r)
		}
		for i := range 3 {
			o.Status.LoadBalancer.Ingress = append(o.Status.LoadBalancer.Ingress,
				corev1.LoadBalancerIngress{IP: fmt.Sprint("203.0.113.", i)})
		}
		have := bounded(o, x.ports, 0)
		if len(have.SourceRanges) != x.wantRanges || len(have.Ports) != x.wantPorts ||
			len(have.LoadBalancerIPs) != x.wantBalancer {
			t.Errorf("%+v: %d ranges, %d ports, %v, %v", x, len(have.SourceRanges), len(have.Ports),
				have.LoadBalancerIPs, have.Problems)
		}
	}
}

// TestManyPorts: of very many ports with very many endpoints the last are not served.
func TestManyPorts(t *testing.T) {
	for _, x := range []struct{ ports, endpoints, want int }{
		{10_000, 6, 8192}, {10_000, 4, 10_000}, {20_000, 0, 20_000}, {2, 40_000, 1}, {1, 65_537, 0},
	} {
		have := bounded(loadBalancer(), x.ports, x.endpoints)
		if len(have.Ports) != x.want ||
			strings.Contains(strings.Join(have.Problems, ""), "by protocol and number") != (x.ports > x.want) {
			t.Errorf("%+v: %d ports, %v", x, len(have.Ports), have.Problems)
		}
	}
}

// bounded is a Service with endpoints in both families behind each port.
func bounded(o *corev1.Service, ports, endpoints int) *world.Service {
	o.Spec.Ports = nil
	p := servicePartOf(o)
	part := &slicePart{name: "a", ports: map[portName]uint16{}}
	for i := range ports {
		port := world.ServicePort{Name: fmt.Sprint(i), Protocol: "tcp", Port: uint16(i + 1)}
		p.Ports = append(p.Ports, port)
		part.ports[portName{port.Name, port.Protocol}] = 8080
	}
	for i := range endpoints {
		part.endpoints = append(part.endpoints, world.Endpoint{AddrPort: at("10.0.0.0", i)},
			world.Endpoint{AddrPort: at("fd00::", i)})
	}
	part.has = perFamily{endpoints, endpoints}
	return joinSlices(p, []*slicePart{part})
}

func at(network string, n int) netip.AddrPort {
	a := netip.MustParseAddr(network)
	return netip.AddrPortFrom(world.Nth(netip.PrefixFrom(a, a.BitLen()-24), n), 8080)
}
