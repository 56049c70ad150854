package service

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// externalIPs is api/v1's AnnotationExternalIPs.
const externalIPs = "egret.k8s.ovn.org/external-ips"

// refusalAtNodes is why a Service does not get a port of an address that nodes have. A load balancer's word is an
// administrator's: users may not write status.loadBalancer. Anybody who may write a Service names any address in
// spec.externalIPs, so that people have to let nodes' addresses be used. Ports that a node itself listens at are never
// given.
func refusalAtNodes(w *world.View, s *world.Service, f world.Frontend, nodes []string) decide.Notice {
	if !slices.Contains(s.LoadBalancerIPs, f.IP) {
		for _, name := range nodes {
			if n := w.Node(name); n == nil || !n.LetsExternalIPs {
				return refusedNotice(decide.Finding{Reason: addressOfNode, IP: f.IP},
					"%s is an address of node %s, and stays that: use a node port, or another address, or have an "+
						"administrator annotate the node with %s=true", f.IP, name, externalIPs)
			}
		}
	}
	if what := ofNodeItself(w, f); what != "" {
		return refusedNotice(decide.Finding{Reason: portOfNode, IP: f.IP, Part: f.String()},
			"%s is on node %s the port of %s: use another port or address", f, nodes[0], what)
	}
	return decide.Notice{}
}

// refusalToUser is why a Service does not get an address that only its spec.externalIPs name. The port does not matter:
// beside a load balancer's port, another one of its address is that namespace's alone, and a gateway's answer tells
// controllers whether a node is cut off.
func refusalToUser(w *world.View, s *world.Service, f world.Frontend) decide.Notice {
	ofThese := func(key string) bool { return strings.HasPrefix(key, s.Namespace+"/") }
	if with := w.BalancersAt(f.IP); len(with) > 0 && !slices.ContainsFunc(with, ofThese) {
		return refusedNotice(decide.Finding{Reason: ofBalancer, IP: f.IP},
			"%s is the address of the load balancer of Service %s, and stays that: use another address", f.IP, with[0])
	}
	if nodes := w.GatewaysAt(f.IP); len(nodes) > 0 && len(w.NodesAt(f.IP)) == 0 {
		return refusedNotice(decide.Finding{Reason: ofGateway, IP: f.IP},
			"%s is the default gateway of node %s, and stays that: use another address", f.IP, nodes[0])
	}
	if world.NotAHosts(world.Single(f.IP)) != "" || classE.Contains(f.IP) || w.IsNetworkEnd(f.IP) {
		return refusedNotice(decide.Finding{Reason: ofNoHost, IP: f.IP},
			"%s is no address that a host can have: use another address", f.IP)
	}
	return decide.Notice{}
}

// classE is RFC 1112's: it is reserved, and its last address is the broadcast address of every network.
var classE = netip.MustParsePrefix("240.0.0.0/4")

// ownPorts are the ports that nodes listen at, or may, for every protocol. A Service with one of them would take
// connections to the node itself, or between nodes. Services need none of them at a node's address. Other ports that a
// host listens at are not known.
var ownPorts = []struct {
	first, last uint16
	what        string
}{
	{22, 22, "SSH"},
	{68, 68, "the DHCP client"},
	{179, 179, "BGP"},
	{546, 546, "the DHCPv6 client"},
	{2379, 2380, "etcd"},
	{world.GenevePort, world.GenevePort, "nodes' tunnels"},
	{6443, 6443, "the API server"},
	{9345, 9345, "RKE2's supervisor"},
	{9409, 9410, "Egret's metrics"},
	{10248, 10259, "the kubelet or another part of Kubernetes"}, // and Egret's health check, 10256
	{30000, 32767, "a node port or a Service's health check"},   // the API server's default range
}

// ofNodeItself says what a node itself listens at a port for; "" if nothing is known. The API server may have another
// port than its usual one, and node ports another range.
func ofNodeItself(w *world.View, f world.Frontend) string {
	for _, p := range ownPorts {
		if p.first <= f.Port && f.Port <= p.last {
			return p.what
		}
	}
	switch {
	case int(f.Port) == w.Config.EncapPort:
		return "nodes' tunnels"
	case f.Port == w.Config.NodeHealthPort:
		return "a load balancer's health check"
	case w.First(world.Frontend{Protocol: f.Protocol, Port: f.Port}) != "":
		return "a node port"
	case isAPIServer(w, func(e world.Endpoint) bool { return e.Addr() == f.IP && e.Port() == f.Port }):
		return "the API server"
	}
	return ""
}
