package kube

import (
	"fmt"
	"math/bits"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/world"
)

// How much one Service is served with, in each family. Each node has flows for each port at each address, and for some
// Services an element of a set for each endpoint of these: who may write a Service in one namespace is not to make work
// for all nodes that grows with the product.
const (
	mostFronts    = 64    // addresses beside cluster IPs
	mostFrontends = 4096  // these addresses with their ports
	mostChoices   = 65536 // these addresses with their ports and the ports' endpoints, or source ranges
)

// bound leaves out what is too much: the last ports, and of addresses beside cluster IPs those of spec.externalIPs
// first. One address of each family stays.
func bound(s *world.Service) {
	if n := portsServed(s); n < len(s.Ports) {
		s.Problems = append(slices.Clip(s.Problems), fmt.Sprintf("of its %d ports the first %d, by protocol and "+
			"number, are served, which is the most with so many endpoints or source ranges: divide it into "+
			"several Services", len(s.Ports), n))
		s.Ports = s.Ports[:n]
	}
	have := len(s.LoadBalancerIPs) + len(s.ExternalIPs)
	left := map[world.Family]int{world.V4: addressesServed(s, world.V4), world.V6: addressesServed(s, world.V6)}
	s.LoadBalancerIPs, s.ExternalIPs = firstOf(s.LoadBalancerIPs, left), firstOf(s.ExternalIPs, left)
	if n := len(s.LoadBalancerIPs) + len(s.ExternalIPs); n < have {
		s.Problems = append(slices.Clip(s.Problems), fmt.Sprintf("it has %d addresses beside cluster IPs, and is "+
			"served at the first %d of them, which is the most with %d ports and as many endpoints or "+
			"source ranges: divide it into several Services", have, n, len(s.Ports)))
	}
}

// portsServed is how many of the ports one address is served with.
func portsServed(s *world.Service) int {
	v4, v6 := 0, 0
	clients4, clients6 := clients(s, world.V4), clients(s, world.V6)
	for i, p := range s.Ports {
		v4 += choices(p, world.V4, clients4)
		v6 += choices(p, world.V6, clients6)
		if max(v4, v6) > mostChoices {
			return i
		}
	}
	return len(s.Ports)
}

// addressesServed is how many addresses of a family are served beside cluster IPs.
func addressesServed(s *world.Service, f world.Family) int {
	n, ranges := 0, clients(s, f)
	for _, p := range s.Ports {
		n += choices(p, f, ranges)
	}
	return max(1, min(mostFronts, mostFrontends/max(1, len(s.Ports)), mostChoices/max(1, n)))
}

// clients are the source ranges of a family.
func clients(s *world.Service, f world.Family) int {
	n := 0
	for _, r := range s.SourceRanges {
		if world.FamilyOf(r.Addr()) == f {
			n++
		}
	}
	return n
}

// choices are a port's endpoints of a family, or the source ranges if these are more, made up to a power of two: what
// is left out is not to change with each endpoint.
func choices(p world.ServicePort, f world.Family, clients int) int {
	n := 0
	for _, e := range p.Endpoints {
		if world.FamilyOf(e.Addr()) == f {
			n++
		}
	}
	return 1 << bits.Len(uint(max(1, n, clients)-1))
}

// firstOf are the first addresses, as many of each family as are left of it.
func firstOf(list []netip.Addr, left map[world.Family]int) []netip.Addr {
	var out []netip.Addr
	for _, a := range list {
		if f := world.FamilyOf(a); left[f] > 0 {
			left[f]--
			out = append(out, a)
		}
	}
	return out
}
