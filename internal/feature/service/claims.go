package service

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// Gets says whether a Service gets an address and port that it asks for.
func Gets(w *world.View, s *world.Service, f world.Frontend) bool {
	return (!s.IsFront(f) || w.Fronts(s)) && w.IsFirst(f, s.Key()) && refusalToFirst(w, s, f).Message == ""
}

// External are the addresses beside cluster IPs that a Service asks for and gets for one of its ports, without node
// ports.
func External(w *world.View, s *world.Service, p world.ServicePort) []netip.Addr {
	var out []netip.Addr
	for _, ip := range slices.Concat(s.LoadBalancerIPs, s.ExternalIPs) {
		if !slices.Contains(out, ip) && !slices.Contains(s.ClusterIPs, ip) &&
			Gets(w, s, world.Frontend{IP: ip, Protocol: p.Protocol, Port: p.Port}) {
			out = append(out, ip)
		}
	}
	return out
}

// Served returns the addresses and ports that a Service gets, without cluster IPs and node ports: no two Services have
// the same of these.
func Served(w *world.View, s *world.Service) []world.Frontend {
	var out []world.Frontend
	for _, f := range s.Frontends() {
		if s.IsFront(f) && Gets(w, s, f) {
			out = append(out, f)
		}
	}
	return out
}

// Reasons of findings about Services.
const (
	unreadable    = "Unreadable" // as in its spec
	servedFor     = "ServedFor"  // another Service, which comes first
	tooMany       = "TooMany"    // addresses with their ports, of older Services of its namespace
	addressOfNode = "AddressOfNode"
	portOfNode    = "PortOfNode" // ports that the node itself listens at
	ofEgressIP    = "AddressOfEgressIP"
	ofAPIServer   = "AddressOfAPIServer"
	ofGateway     = "AddressOfGateway"
	ofBalancer    = "AddressOfLoadBalancer" // of another namespace's Service
	ofNoHost      = "AddressOfNoHost"
	insideCluster = "InsideCluster" // an address of the cluster's own subnets
	nobodyHasIt   = "NobodyHasIt"   // an endpoint inside the subnets for pods, and in no node's part
	noEndpoint    = "NoEndpoint"    // an endpoint inside another of the cluster's own subnets
	portOfTunnels = "PortOfTunnels" // an endpoint outside the pods' subnets at the UDP port of nodes' tunnels
)

// refusedNotice is what was found, with the words for it; of one address all ports may have the same.
func refusedNotice(f decide.Finding, format string, args ...any) decide.Notice {
	f.Kind = ReasonRefused
	return decide.Notice{Finding: f, Event: ReasonRefused, Message: fmt.Sprintf(format, args...)}
}

// Refusals say what a Service asks for and does not get, and what to do about each.
func Refusals(w *world.View, s *world.Service) []decide.Notice {
	var out []decide.Notice
	found := map[decide.Finding]bool{} // a Service's author decides how many they are
	add := func(n decide.Notice) {
		if n.Message != "" && !found[n.Finding] {
			found[n.Finding] = true
			out = append(out, n)
		}
	}
	for _, problem := range s.Problems {
		add(refusedNotice(decide.Finding{Reason: unreadable, Detail: problem}, "%s", problem))
	}
	for _, f := range s.Frontends() {
		add(refusalNotice(w, s, f))
	}
	parts := sync.OnceValue(func() []netip.Prefix { return partsOfNodes(w) })
	type endpoint struct {
		ip            netip.Addr
		named, tunnel bool
	}
	seen := map[endpoint]bool{} // of many ports
	for _, p := range s.Ports {
		for _, e := range p.Endpoints {
			if one := (endpoint{e.Addr(), e.Node != "", isTunnel(w.Config, p, e)}); !seen[one] {
				seen[one] = true
				add(unusableNotice(w, e, one.tunnel, parts))
			}
		}
	}
	return out
}

// unusableNotice says why an endpoint gets no connections; it says nothing if it gets some.
func unusableNotice(w *world.View, e world.Endpoint, tunnel bool, parts func() []netip.Prefix) decide.Notice {
	n := unreachableNotice(w, e, parts)
	if n.Message == "" && tunnel {
		return refusedNotice(decide.Finding{Reason: portOfTunnels, IP: e.Addr()},
			"endpoint %s is at UDP port %d, which is that of nodes' tunnels: it gets no connections, use another port",
			e.AddrPort, w.Config.EncapPort)
	}
	return n
}

// unreachableNotice is why nobody can be at an endpoint's address; it says nothing if somebody can. An address outside
// all of the cluster's subnets is a host's, of this network or of one that it has a route to.
func unreachableNotice(w *world.View, e world.Endpoint, parts func() []netip.Prefix) decide.Notice {
	subnet, what := clusterSubnetOf(w.Config, e.Addr())
	switch {
	case what == "" || what == forPods && (e.Node != "" || anyContains(parts(), e.Addr())):
		return decide.Notice{}
	case what == forPods:
		return refusedNotice(decide.Finding{Reason: nobodyHasIt, IP: e.Addr()},
			"endpoint %s is inside %s, which is %s, and in no node's part of it: connections to it get no answer, "+
				"take it out", e.Addr(), subnet, what)
	}
	return refusedNotice(decide.Finding{Reason: noEndpoint, IP: e.Addr()},
		"endpoint %s is inside %s, which is %s: it gets no connections, name pods or hosts", e.Addr(), subnet, what)
}

// partsOfNodes are the nodes' parts of the subnets for pods.
func partsOfNodes(w *world.View) (out []netip.Prefix) {
	for _, name := range w.Nodes() {
		out = append(out, w.Node(name).Subnets...)
	}
	return out
}

func anyContains(prefixes []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}

// refusalNotice is why a Service does not get an address and port; it says nothing if it does. The order of precedence
// is world.First's. An address of an EgressIP, a pod or another part of the cluster stays theirs.
func refusalNotice(w *world.View, s *world.Service, f world.Frontend) decide.Notice {
	if s.IsFront(f) && !w.Fronts(s) {
		return refusedNotice(decide.Finding{Reason: tooMany},
			"it is served at cluster IPs and node ports alone: older Services of namespace %s have more than the %d "+
				"addresses with their ports that one namespace has, so use fewer addresses and ports in them, or another "+
				"namespace", s.Namespace, world.MaxFronts)
	}
	if first := w.First(f); first != "" && first != s.Key() {
		if o := w.ServiceSpec(first); !slices.Contains(s.LoadBalancerIPs, f.IP) &&
			slices.Contains(o.LoadBalancerIPs, f.IP) {
			return refusedNotice(decide.Finding{Reason: servedFor, IP: f.IP, Part: f.String()},
				"%s is served for Service %s, whose load balancer has that address: give one of them another address "+
					"or port", f, first)
		}
		return refusedNotice(decide.Finding{Reason: servedFor, IP: f.IP, Part: f.String()},
			"%s is served for Service %s, which comes first: give one of them another address or port", f, first)
	}
	return refusalToFirst(w, s, f)
}

// refusalToFirst is why the Service that comes first of all does not get an address and port.
func refusalToFirst(w *world.View, s *world.Service, f world.Frontend) decide.Notice {
	if !s.IsFront(f) {
		return decide.Notice{}
	}
	balanced := slices.Contains(s.LoadBalancerIPs, f.IP)
	nodes := w.NodesAt(f.IP)
	if len(nodes) == 0 && !balanced { // kube-vip and keepalived put a load balancer's address on a host
		nodes = w.HostsAt(f.IP)
	}
	if len(nodes) > 0 {
		if n := refusalAtNodes(w, s, f, nodes); n.Message != "" || balanced {
			return n
		}
		return refusalToUser(w, s, f)
	}
	if isAPIServer(w, func(e world.Endpoint) bool { return e.Addr() == f.IP }) {
		return refusedNotice(decide.Finding{Reason: ofAPIServer, IP: f.IP},
			"%s is an address of an API server, by Service %s, and stays that: use another address", f.IP, world.APIServers)
	}
	if by := w.PlacedBy(f.IP); len(by) > 0 {
		return refusedNotice(decide.Finding{Reason: ofEgressIP, IP: f.IP},
			"%s is an address of EgressIP %s, and stays that: take it out of that, or use another address", f.IP, by[0])
	}
	if subnet, what := clusterSubnetOf(w.Config, f.IP); what != "" {
		return refusedNotice(decide.Finding{Reason: insideCluster, IP: f.IP},
			"%s is inside %s, which is %s: use an address of no such subnet", f.IP, subnet, what)
	}
	if balanced {
		return decide.Notice{}
	}
	return refusalToUser(w, s, f)
}

// isAPIServer says whether an API server is such an endpoint. Its machine need be no node: the hosts' own connections
// to it must not go elsewhere.
func isAPIServer(w *world.View, is func(world.Endpoint) bool) bool {
	s := w.Service(world.APIServers)
	if s == nil {
		return false
	}
	return slices.ContainsFunc(s.Ports, func(p world.ServicePort) bool {
		return slices.ContainsFunc(p.Endpoints, is)
	})
}

const forPods = "for pods"

// clusterSubnetOf says which of the cluster's own subnets an address is in.
func clusterSubnetOf(c *world.Config, ip netip.Addr) (subnet netip.Prefix, what string) {
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
	for _, s := range slices.Concat(c.JoinSubnets, c.TransitSubnets, c.SlotSubnets, world.FurtherSlotSubnets()) {
		if s.Masked().Contains(ip) {
			return s, "between the cluster's routers"
		}
	}
	for _, s := range c.MasqueradeSubnets {
		if s.Masked().Contains(ip) {
			return s.Masked(), "for use inside nodes"
		}
	}
	return netip.Prefix{}, ""
}
