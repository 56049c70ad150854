package service

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// isInDefaultNetwork says whether a Service is one of the default network: hosts reach the cluster IPs of those alone.
func isInDefaultNetwork(w *world.View, s *world.Service) bool {
	return w.PrimaryNetwork(s.Namespace) == ref.DefaultNetwork
}

// compileInNetwork adds the load balancers of a Service in its namespace's own network: those of the node's switch
// there for pods, and those of the gateway router there for the outside.
func compileInNetwork(w *world.View, s *world.Service, out *plan.Rows) {
	part := w.Part(w.PrimaryNetwork(s.Namespace))
	if part == nil {
		return
	}
	names, rows := plan.Names{Network: part.Name, ID: part.ID}, balancers{}
	for _, p := range s.Ports {
		for _, f := range part.Families() {
			onSwitch(w, s, p, f, part.Host, rows)
			for _, ip := range f.OfAddrs(External(w, s, p)) {
				refusePods(w, s, p, f, ip, plan.Switch(names.NodeSwitch(w.Self)), out)
			}
			for _, ip := range f.OfAddrs(s.ClusterIPs) {
				onNetworkGateway(w, s, p, part, ip, rows, out)
			}
		}
	}
	rows.writeRows(w.Config, names, w.Self, s, out)
}

// onNetworkGateway is what comes from outside to a Service of a network. The host has translated it to the cluster IP,
// which no two networks share, and sends it by its management port to the default network's cluster router. This leads
// it to the network's gateway router. Connections without an endpoint the host rejects.
func onNetworkGateway(w *world.View, s *world.Service, p world.ServicePort, part *world.Part, ip netip.Addr,
	rows balancers, out *plan.Rows) {
	f := world.FamilyOf(ip)
	to, _ := podsFromOutside(w, s, p, part.Network, f)
	if len(to) == 0 || !isAskedFromOutside(w, s, p, f) || !Gets(w, s, world.Frontend{IP: ip, Protocol: p.Protocol,
		Port: p.Port}) {
		return
	}
	scope := scopeRouter
	if s.ExternalLocal {
		scope = scopeLocalRouter
	}
	rows.addVIP(scope, p.Protocol, ip, p.Port, to)
	via, _ := part.Masquerade(f)
	names := plan.Names{Network: part.Name, ID: part.ID}
	out.AddRoute(plan.DefaultNames().ClusterRouter(), "dst-ip", world.Single(ip).String(), via.String(),
		names.LinkToNetwork(w.Self))
	out.AddElem(plan.NetworkServices(f.String()), ip.String())
}

// isAskedFromOutside says whether a port of a Service has an address for the outside.
func isAskedFromOutside(w *world.View, s *world.Service, p world.ServicePort, f world.Family) bool {
	return HasNodePort(w, s, p) || len(f.OfAddrs(External(w, s, p))) > 0
}

// podsFromOutside are the pods of a network that connections from outside to a Service go to, and the hosts, to which
// the host itself brings connections.
func podsFromOutside(w *world.View, s *world.Service, p world.ServicePort, n *world.Network,
	f world.Family) (pods, hosts []world.Endpoint) {
	for _, e := range fromOutside(s, BackendsOf(w, s, p, f)) {
		if anyContains(n.Cluster(f), e.Addr()) {
			pods = append(pods, e)
		} else {
			hosts = append(hosts, e)
		}
	}
	return pods, hosts
}

// fromOutside are all endpoints that the external traffic policy lets connections from outside go to.
func fromOutside(s *world.Service, b Backends) []world.Endpoint {
	if s.ExternalLocal {
		return slices.Concat(b.LocalHost, b.LocalPods)
	}
	return b.Cluster
}

// reachableEndpoints are the endpoints of a Service of the default network that connections may go to. A pod that has
// a network of its own is no endpoint there, whatever a slice says: behind the host's own connections the pod would
// take everybody for its kubelet.
func reachableEndpoints(w *world.View, s *world.Service, p world.ServicePort, f world.Family) []world.Endpoint {
	return slices.DeleteFunc(slices.Clone(p.Endpoints), func(e world.Endpoint) bool {
		_, what := clusterSubnetOf(w.Config, e.Addr())
		return world.FamilyOf(e.Addr()) != f || what != "" && what != forPods || isTunnel(w.Config, p, e) ||
			what == forPods && isOnThisNode(w, ref.DefaultNetwork, e) && w.HasOwnNetwork(e.Addr())
	})
}

// endpointsIn are the endpoints of a Service in another network, sorted by address and port, each once. EndpointSlices
// name pods' addresses in the default network: here are those that the same pods have in this one. A slice that names
// another address than the pod's is of a former pod with that name. Hosts keep their addresses.
func endpointsIn(w *world.View, s *world.Service, network string, p world.ServicePort,
	f world.Family) []world.Endpoint {
	var out []world.Endpoint
	for _, e := range p.Endpoints {
		_, what := clusterSubnetOf(w.Config, e.Addr())
		switch {
		case network == "" || world.FamilyOf(e.Addr()) != f: // "": the namespace waits for its network
		case what == "" && !isTunnel(w.Config, p, e):
			out = append(out, e)
		case what == forPods && e.Pod != "":
			if ip, ok := w.AddressIn(network, s.Namespace+"/"+e.Pod, e.Addr()); ok {
				e.AddrPort = netip.AddrPortFrom(ip, e.Port())
				out = append(out, e)
			}
		}
	}
	slices.SortFunc(out, func(a, b world.Endpoint) int { return a.AddrPort.Compare(b.AddrPort) })
	return slices.CompactFunc(out, func(a, b world.Endpoint) bool { return a.AddrPort == b.AddrPort })
}

// intoNetwork is where connections from outside to a Service of another network than the default one go: hosts have
// their shares, and OVN has that of all pods. It balances them at the network's gateway router, by the cluster IP, if
// this node has a part of the network.
func (h hostPort) intoNetwork() []share {
	network := h.w.PrimaryNetwork(h.s.Namespace)
	n := h.w.Network(network)
	if n == nil {
		return nil
	}
	pods, hosts := podsFromOutside(h.w, h.s, h.p, n, h.family)
	out := equalShares(hosts)
	if len(pods) > 0 && h.w.Part(network) != nil && h.getsFrontend(world.Frontend{IP: h.clusterIP,
		Protocol: h.p.Protocol, Port: h.p.Port}) {
		out = append(out, share{netip.AddrPortFrom(h.clusterIP, h.p.Port), len(pods)})
	}
	return out
}

// translateForNetworks has the host choose among the endpoints of an open Service, where some are hosts: OVN cannot
// bring a packet back to the host that it came from. With pods alone the packet goes back to the node's switch, which
// balances it. The numbers stand in the rule: nft 1.0.6 takes no new rule that names one of the maps with numbers of
// Host, once they are in the kernel.
func (h hostPort) translateForNetworks() {
	if !slices.Contains(world.OpenServiceKeys(), h.s.Key()) || !h.w.HasNetworks() || h.allPods(h.b.Internal) {
		return
	}
	ip, targets := [...]string{"ip", "ip6"}[h.family], []string{}
	for i, e := range h.b.Internal {
		targets = append(targets, fmt.Sprintf("%d : %s . %d", i, e.Addr(), e.Port()))
	}
	id := plan.NFTRule{Chain: h.out.AddChain(plan.ChainServices), Name: fmt.Sprintf("3-networks %s %d/%s", h.clusterIP,
		h.p.Port, h.p.Protocol)}
	plan.Add(&h.out.NFTRules, id, fmt.Sprintf("iifname %q %[2]s saddr %[3]s %[2]s daddr %[4]s meta l4proto %[5]s "+
		"th dport %[6]d dnat %[2]s to numgen random mod %[7]d map { %[8]s }", plan.DefaultNames().ManagementPort(), ip,
		world.Masquerades(h.family), h.clusterIP, h.p.Protocol, h.p.Port, len(targets), strings.Join(targets, ", ")))
}
