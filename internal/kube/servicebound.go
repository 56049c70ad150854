package kube

import (
	"fmt"
	"math/bits"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/world"
)

// How much one Service is served with, in each family. Each node has flows for each port at each address, and for some
// Services an element of a set for each of their endpoints. An author of Services in one namespace must not make work
// for all nodes that grows with the product.
const (
	mostFronts    = 64    // addresses beside cluster IPs
	mostFrontends = 512   // these addresses with their ports
	mostChoices   = 16384 // these addresses with their ports and the ports' endpoints, or source ranges
	mostOfOne     = 65536 // the same of one address, which is always served
)

// boundService leaves out what is too much: the last ports, and of addresses beside cluster IPs those of
// spec.externalIPs first. One address of each family stays. The parts have the endpoints.
func boundService(s *world.Service, parts []*slicePart) {
	choices, ports := countChoices(s, parts)
	if ports < len(s.Ports) {
		s.Problems = append(slices.Clip(s.Problems), fmt.Sprintf("of its %d ports the first %d, by protocol and "+
			"number, are served, which is the most with so many endpoints or source ranges: divide it into "+
			"several Services", len(s.Ports), ports))
		s.Ports = s.Ports[:ports]
	}
	have := len(s.LoadBalancerIPs) + len(s.ExternalIPs)
	var left perFamily
	for f := range left {
		left[f] = max(1, min(mostFronts, mostFrontends/max(1, ports), mostChoices/max(1, choices[f])))
	}
	s.LoadBalancerIPs, s.ExternalIPs = firstOf(s.LoadBalancerIPs, &left), firstOf(s.ExternalIPs, &left)
	if n := len(s.LoadBalancerIPs) + len(s.ExternalIPs); n < have {
		s.Problems = append(slices.Clip(s.Problems), fmt.Sprintf("it has %d addresses beside cluster IPs, and is "+
			"served at the first %d of them, which is the most with %d ports and as many endpoints or "+
			"source ranges: divide it into several Services", have, n, ports))
	}
}

// countChoices is how many ports one address is served with, and how many choices these have.
func countChoices(s *world.Service, parts []*slicePart) (choices perFamily, ports int) {
	clients := clientsOf(s)
	for i := range s.Ports {
		more := choices
		for f, n := range endpointsOf(&s.Ports[i], parts) {
			more[f] += roundToPowerOfTwo(max(1, n, clients[f]))
		}
		if max(more[world.V4], more[world.V6]) > mostOfOne {
			return choices, i
		}
		choices = more
	}
	return choices, len(s.Ports)
}

// roundToPowerOfTwo rounds n up to a power of two, so that the endpoints that are left out do not change with each
// endpoint that comes or goes.
func roundToPowerOfTwo(n int) int { return 1 << bits.Len(uint(n-1)) }

// endpointsOf counts the endpoints of a port; one that moves from a slice to another for a moment twice.
func endpointsOf(port *world.ServicePort, parts []*slicePart) (n perFamily) {
	for _, p := range parts {
		if p.portNumber(port) == 0 {
			continue
		}
		for f := range n {
			n[f] += p.has[f]
		}
	}
	return n
}

// clientsOf counts the source ranges.
func clientsOf(s *world.Service) (n perFamily) {
	for _, r := range s.SourceRanges {
		n[world.FamilyOf(r.Addr())]++
	}
	return n
}

// firstOf are the first addresses, as many of each family as are left of it.
func firstOf(list []netip.Addr, left *perFamily) []netip.Addr {
	var out []netip.Addr
	for _, a := range list {
		if f := world.FamilyOf(a); left[f] > 0 {
			left[f]--
			out = append(out, a)
		}
	}
	return out
}
