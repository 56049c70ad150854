package service

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/world"
)

// Gets says whether a Service gets an address and port that it asks for.
func Gets(w *world.View, s *world.Service, f world.Frontend) bool { return refusal(w, s, f) == "" }

// External are the addresses beside cluster IPs that a Service asks for and gets for one of its ports, without node ports.
func External(w *world.View, s *world.Service, p world.ServicePort) []netip.Addr {
	var out []netip.Addr
	for _, ip := range slices.Concat(s.LoadBalancerIPs, s.ExternalIPs) {
		if !slices.Contains(out, ip) && !slices.Contains(s.ClusterIPs, ip) && Gets(w, s, world.Frontend{IP: ip, Protocol: p.Protocol, Port: p.Port}) {
			out = append(out, ip)
		}
	}
	return out
}

// Refusals say what a Service asks for and does not get, and what to do about each.
func Refusals(w *world.View, s *world.Service) []string {
	out := slices.Clone(s.Problems)
	add := func(why string) {
		if why != "" && !slices.Contains(out, why) {
			out = append(out, why)
		}
	}
	for _, f := range s.Frontends() {
		add(refusal(w, s, f))
	}
	for _, p := range s.Ports {
		for _, e := range p.Endpoints {
			add(nowhere(w, e))
		}
	}
	return out
}

// nowhere is why nobody can be at an endpoint's address; "" if somebody can. What is in none of the cluster's subnets is a host's, of this network or of
// one that it has a route to.
func nowhere(w *world.View, e world.Endpoint) string {
	subnet, what := inside(w.Config, e.Addr())
	switch {
	case what == "" || what == forPods && (e.Node != "" || nodeOf(w, e.Addr())):
		return ""
	case what == forPods:
		return fmt.Sprintf("endpoint %s is inside %s, which is %s, and in no node's part of it: connections to it get no answer, take it out", e.Addr(), subnet, what)
	}
	return fmt.Sprintf("endpoint %s is inside %s, which is %s: it gets no connections, name pods or hosts", e.Addr(), subnet, what)
}

func nodeOf(w *world.View, pod netip.Addr) bool {
	return slices.ContainsFunc(w.Nodes(), func(name string) bool {
		return slices.ContainsFunc(w.Node(name).Subnets, func(s netip.Prefix) bool { return s.Contains(pod) })
	})
}

// refusal is why a Service does not get an address and port; "" if it does. The order of precedence is world.Claimants'; what is an address
// of a host, a pod or another part of the cluster stays that.
func refusal(w *world.View, s *world.Service, f world.Frontend) string {
	if first := w.Claimants(f); len(first) > 0 && first[0] != s.Key() {
		return fmt.Sprintf("%s is served for Service %s, which comes first: give one of them another address or port", f, first[0])
	}
	if !f.IP.IsValid() || slices.Contains(s.ClusterIPs, f.IP) {
		return ""
	}
	if nodes := w.NodesAt(f.IP); len(nodes) > 0 {
		return fmt.Sprintf("%s is an address of node %s, and stays that: use a node port, or another address", f.IP, nodes[0])
	}
	if subnet, what := inside(w.Config, f.IP); what != "" {
		return fmt.Sprintf("%s is inside %s, which is %s: use an address of no such subnet", f.IP, subnet, what)
	}
	return ""
}

const forPods = "for pods"

// inside says which of the cluster's own subnets an address is in.
func inside(c *world.Config, ip netip.Addr) (subnet netip.Prefix, what string) {
	for _, s := range c.ClusterSubnets {
		if s.CIDR.Contains(ip) {
			return s.CIDR, forPods
		}
	}
	for _, s := range c.ServiceSubnets {
		if s.Contains(ip) {
			return s, "for cluster IPs"
		}
	}
	for _, s := range slices.Concat(c.JoinSubnets, c.TransitSubnets, c.SlotSubnets) {
		if s.Masked().Contains(ip) {
			return s, "between the cluster's routers"
		}
	}
	return netip.Prefix{}, ""
}
