package service

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// HostPorts is what the host's kernel translates for one Service: connections that come to the host, and those of its
// own processes. Where all endpoints are pods that is one row an address and port, to the cluster IP, which OVN
// balances. OVN cannot bring a packet back to the host that sent it: where an endpoint is no pod the host chooses among
// all of them itself.
type HostPorts struct{}

func (HostPorts) Name() string    { return "service-host-ports" }
func (HostPorts) Per() world.Kind { return world.KindService }

// Compile adds the elements of one Service, and its health check.
func (HostPorts) Compile(w *world.View, key string, out *plan.Rows) {
	s := w.Service(key)
	if _, _, ok := w.Zone(); !ok || s == nil {
		return
	}
	for _, p := range s.Ports {
		for _, ip := range s.ClusterIPs {
			h := hostPort{w: w, s: s, p: p, family: world.FamilyOf(ip), clusterIP: ip, out: out}
			h.b = BackendsOf(w, s, p, h.family)
			h.addElements()
		}
	}
	healthCheck(w, s, out)
}

// hostPort is one port of a Service in one family.
type hostPort struct {
	w         *world.View
	s         *world.Service
	p         world.ServicePort
	family    world.Family
	clusterIP netip.Addr
	b         Backends
	out       *plan.Rows
}

// addElements adds the cluster IP, for processes of the host, and the addresses that the outside uses too.
func (h hostPort) addElements() {
	if h.getsFrontend(world.Frontend{IP: h.clusterIP, Protocol: h.p.Protocol, Port: h.p.Port}) &&
		isInDefaultNetwork(h.w, h.s) && !h.byOVN(h.b.Internal) {
		h.translateTo(ownHost, netip.AddrPortFrom(h.clusterIP, h.p.Port), equalShares(h.b.Internal), h.s.Affinity > 0)
		h.translateForNetworks()
	}
	for _, at := range h.externalAddrPorts() {
		from, own := h.fromOutside(), h.ofOwnHost()
		h.translateTo(all, at, from, h.s.Affinity > 0)
		if !slices.Equal(from, own) {
			h.translateTo(ownHost, at, own, h.s.Affinity > 0)
		}
		if slices.ContainsFunc(from, h.isLocalOnly) && h.comesInFragments() {
			h.translateTo(fragments, at, equalShares(h.b.LocalPods), h.s.Affinity > 0)
		}
		h.addSourceElements(at, from)
	}
}

// comesInFragments reports whether a connection that comes by the bridge began in fragments, and OVN balances all
// others. Pods see it with the management port's address whatever the policy: their answers to the client would leave
// by the gateway router.
func (h hostPort) comesInFragments() bool { return inFragments(h.w, h.p) && !byHost(h.w, h.s) }

func (h hostPort) getsFrontend(f world.Frontend) bool { return Gets(h.w, h.s, f) }

// externalAddrPorts are the addresses and ports that packets from outside come with.
func (h hostPort) externalAddrPorts() []netip.AddrPort {
	var out []netip.AddrPort
	if HasNodePort(h.w, h.s, h.p) {
		for _, a := range h.family.OfAddrs(h.w.Host().Addrs) {
			out = append(out, netip.AddrPortFrom(a, h.p.NodePort))
		}
	}
	for _, a := range h.family.OfAddrs(External(h.w, h.s, h.p)) {
		out = append(out, netip.AddrPortFrom(a, h.p.Port))
	}
	return out
}

// share is one of those that new connections are divided among.
type share struct {
	to     netip.AddrPort
	weight int
}

func equalShares(endpoints []world.Endpoint) []share {
	var out []share
	for _, e := range endpoints {
		out = append(out, share{e.AddrPort, 1})
	}
	return out
}

// fromOutside is where connections from outside go; nowhere where the policy Local leaves no endpoint.
func (h hostPort) fromOutside() []share {
	local := h.w.Config.GatewayMode == world.LocalGateway
	switch {
	case !isInDefaultNetwork(h.w, h.s):
		return h.intoNetwork()
	case !h.s.ExternalLocal:
		return h.anyOf(h.b.Cluster, h.s.Affinity > 0)
	case local && h.p.NodePort != 0 && !(inFragments(h.w, h.p) && len(h.b.LocalPods) > 0):
		return h.byManagementPort()
	case local:
		return equalShares(slices.Concat(h.b.LocalHost, h.b.LocalPods))
	case len(h.b.LocalHost) > 0 && !byHost(h.w, h.s):
		return equalShares(h.b.LocalHost) // the gateway bridge has sent the pods' share to OVN
	case len(h.b.LocalPods) > 0 && HasNodePort(h.w, h.s, h.p) && h.isAnswered():
		return h.byManagementPort() // packets by a link other than the bridge, or of an EgressService's network
	}
	// Pods' answers to the client would leave by the bridge: its address is lost.
	return equalShares(slices.Concat(h.b.LocalHost, h.b.LocalPods))
}

// ofOwnHost is where processes of the host go, for which the policy Local leaves none out.
func (h hostPort) ofOwnHost() []share {
	if h.s.ExternalLocal && len(h.b.LocalPods)+len(h.b.LocalHost) == 0 {
		if nodes := h.nodePorts(); len(nodes) > 0 {
			return nodes
		}
	}
	if !isInDefaultNetwork(h.w, h.s) {
		return h.intoNetwork()
	}
	return h.anyOf(h.b.Cluster, false)
}

// nodePorts are those of the nodes that have the endpoints. There a connection of this host comes from outside and
// keeps its address, as the policy promises; by the management port it would lose it.
func (h hostPort) nodePorts() []share {
	if !HasNodePort(h.w, h.s, h.p) {
		return nil
	}
	endpoints := map[string]int{}
	for _, e := range h.b.Cluster {
		endpoints[e.Node]++
	}
	var out []share
	for _, name := range slices.Sorted(maps.Keys(endpoints)) {
		n := h.w.Node(name)
		if n == nil {
			return nil
		}
		at, ok := h.family.Of(n.Primary)
		if !ok {
			return nil
		}
		out = append(out, share{netip.AddrPortFrom(at.Addr(), h.p.NodePort), endpoints[name]})
	}
	return out
}

// byManagementPort is for the policy Local: own host's endpoints, and the pods' share to where OVN balances to own pods
// only, or rejects.
func (h hostPort) byManagementPort() []share {
	out := equalShares(h.b.LocalHost)
	if pods := len(h.b.LocalPods); pods > 0 || len(out) == 0 {
		out = append(out, share{netip.AddrPortFrom(h.w.Config.LocalOnly(h.family), h.p.NodePort), max(pods, 1)})
	}
	return out
}

// isAnswered says whether the gateway router has a next hop for what a pod answers to a client outside, see toOwnPods.
func (h hostPort) isAnswered() bool { return len(h.family.OfAddrs(h.w.Host().Gateways)) > 0 }

func (h hostPort) isLocalOnly(s share) bool { return s.to.Addr() == h.w.Config.LocalOnly(h.family) }

// anyOf leaves the choice to OVN if it can make it. It sees all clients that the host sends with the host's address: it
// cannot keep each with its endpoint.
func (h hostPort) anyOf(endpoints []world.Endpoint, keepClients bool) []share {
	if len(endpoints) == 0 || h.byOVN(endpoints) && !h.s.InternalLocal && !keepClients {
		return []share{{netip.AddrPortFrom(h.clusterIP, h.p.Port), 1}}
	}
	return equalShares(endpoints)
}

// byOVN reports whether OVN can balance all that the host sends to these.
func (h hostPort) byOVN(endpoints []world.Endpoint) bool {
	return h.allPods(endpoints) && (len(endpoints) == 0 || !inFragments(h.w, h.p))
}

// allPods says whether every endpoint is in the pod network.
func (h hostPort) allPods(endpoints []world.Endpoint) bool {
	pods := h.w.Config.Cluster(h.family)
	return !slices.ContainsFunc(endpoints, func(e world.Endpoint) bool {
		return !slices.ContainsFunc(pods, func(p netip.Prefix) bool { return p.Contains(e.Addr()) })
	})
}

// translateTo translates an address and port.
func (h hostPort) translateTo(who string, at netip.AddrPort, to []share, keepClients bool) {
	choice := shares
	switch {
	case len(to) == 1:
		choice = one
	case keepClients:
		choice = affine
	}
	for i, interval := range divideNumbers(to) {
		if interval == "" {
			continue
		}
		key := h.elementKey(at)
		if choice != one {
			key += " . " + interval
		}
		plan.Add(&h.out.NFTElems, plan.NFTElem{Set: targetsMap(who, choice, h.family), Key: key}, fmt.Sprintf("%s . %d",
			to[i].to.Addr(), to[i].to.Port()))
		if lacksConnectionEnd(h.p.Protocol) {
			plan.Add(&h.out.Datagrams, plan.Datagram{Protocol: h.p.Protocol, From: at, To: to[i].to}, plan.None{})
		}
	}
}

// divideNumbers are the shares' ranges of the numbers below modulus, which leave none out. Where there are more shares
// than numbers, some have none.
func divideNumbers(among []share) []string {
	total, before := 0, 0
	for _, s := range among {
		total += s.weight
	}
	var out []string
	for _, s := range among {
		first := before * modulus / total
		before += s.weight
		interval := ""
		if next := before * modulus / total; next > first {
			interval = fmt.Sprintf("%d-%d", first, next-1)
		}
		out = append(out, interval)
	}
	return out
}

func (h hostPort) elementKey(at netip.AddrPort) string {
	return fmt.Sprintf("%s . %s . %d", at.Addr(), h.p.Protocol, at.Port())
}

// addSourceElements says what becomes of the addresses of clients outside, and of clients that find nobody or may not
// come.
func (h hostPort) addSourceElements(at netip.AddrPort, to []share) {
	byOVN := len(to) == 1 && to[0].to.Addr() == h.clusterIP
	switch {
	case len(to) == 0:
		h.addElement(setRefused, h.elementKey(at))
	case !isInDefaultNetwork(h.w, h.s): // the network's gateway router hides clients from pods, as it balances by them
		h.addElement(setNetworks, h.elementKey(at))
		if !h.s.ExternalLocal {
			h.addElement(setHidden, h.elementKey(at))
		}
	case !h.s.ExternalLocal && !byOVN:
		h.addElement(setHidden, h.elementKey(at))
	case h.s.ExternalLocal && (h.w.Config.GatewayMode == world.LocalGateway ||
		slices.ContainsFunc(to, h.isLocalOnly)):
		h.addElement(setKept, h.elementKey(at))
	}
	if !forSome(h.s, at.Addr()) {
		return
	}
	h.addElement(setRestricted, h.elementKey(at))
	for _, c := range allowedClients(h.s, h.family) {
		h.addElement(setClients, c.String()+" . "+h.elementKey(at))
	}
}

func (h hostPort) addElement(set, key string) {
	plan.Add(&h.out.NFTElems, plan.NFTElem{Set: frontendSet(set, h.family), Key: key}, "")
}

// healthCheck counts the ready endpoints of this node, each address once.
func healthCheck(w *world.View, s *world.Service, out *plan.Rows) {
	if s.HealthCheckPort == 0 || !s.ExternalLocal {
		return
	}
	ready, network := map[netip.Addr]bool{}, w.PrimaryNetwork(s.Namespace)
	for _, p := range s.Ports {
		f, endpoints := world.FamilyOf(s.ClusterIPs[0]), p.Endpoints
		if network != ref.DefaultNetwork {
			endpoints = endpointsIn(w, s, network, p, f)
		}
		for _, e := range endpoints {
			if e.Ready && world.FamilyOf(e.Addr()) == f && isOnThisNode(w, network, e) {
				ready[e.Addr()] = true
			}
		}
	}
	plan.Add(&out.HealthChecks, plan.HealthCheck{Port: s.HealthCheckPort}, plan.HealthSpec{Namespace: s.Namespace,
		Service: s.Name, Endpoints: len(ready)})
}
