package trace

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/plan"
)

// Walk sends a packet from the pod that has its source address. Every end it may come to is listed.
func (c *Cluster) Walk(p Packet) []End {
	w := c.startWalk(p)
	for _, name := range w.nodes {
		if port, ok := w.zones[name].podPort(w.names.NodeSwitch(name), p.Src); ok {
			w.node, w.inport = name, port.name
			if port.secured != nil && !slices.Contains(port.secured, p.Src) {
				return w.endWith(Dropped, "port security of %s", port.name)
			}
			return w.addStep("from %s", port.name).nodeSwitch()
		}
	}
	return w.endWith(Dropped, "no node has a pod with address %s", p.Src)
}

// Arrive sends a packet from outside to a node, over its uplink.
func (c *Cluster) Arrive(node string, p Packet) []End {
	w := c.startWalk(p)
	if w.node = node; w.ownZone() == nil {
		return w.endWith(Dropped, "no node %s", node)
	}
	return w.addStep("from outside").enterNode()
}

func (c *Cluster) startWalk(p Packet) walker {
	return walker{Cluster: c, names: p.networkNames(), p: p}
}

// podPort is the port of a switch that has an address.
func (z *zone) podPort(sw string, a netip.Addr) (switchPort, bool) {
	for _, p := range z.ports {
		for _, ip := range p.ips {
			if ip == a && p.sw == sw {
				return p, true
			}
		}
	}
	return switchPort{}, false
}

func (w walker) ownZone() *zone { return w.zones[w.node] }

// nodeSwitch drops what it must, marks replies, balances Services, and hands over to the port or to the router.
func (w walker) nodeSwitch() []End {
	sw := w.ownZone().switches[w.names.NodeSwitch(w.node)]
	if sw == nil {
		return w.endWith(Dropped, "no switch %s", w.names.NodeSwitch(w.node))
	}
	w, refused := w.enterSwitch(sw, true)
	if refused != nil {
		return refused
	}
	return w.balanceGroups(sw.groups, walker.leaveSwitch)
}

// leaveSwitch is what the node switch does with a packet after it has balanced.
func (w walker) leaveSwitch() []End {
	if refused := w.applyACLs(w.ownZone().switches[w.names.NodeSwitch(w.node)], true, aclBalanced); refused != nil {
		return refused
	}
	if port, ok := w.ownZone().podPort(w.names.NodeSwitch(w.node), w.p.Dst); ok {
		return w.deliverToPort(port)
	}
	return w.enterRouter(w.names.ClusterRouter(), w.names.RouterToNodeSwitch(w.node))
}

// enterSwitch is the ACLs and the QoS rows of a switch, for what comes in by a port of it. Packets from a router are
// not given to conntrack, nor balanced.
func (w walker) enterSwitch(sw *lswitch, tracked bool) (out walker, refused []End) {
	if refused := w.applyACLs(sw, tracked, aclEnters); refused != nil {
		return w, refused
	}
	for _, q := range sw.qos {
		if w.matchHolds(q.match, w.inport, tracked) {
			w.mark = q.mark
			return w.addStep("QoS %s marks %d", q.id, w.mark), nil
		}
	}
	return w, nil
}

// applyACLs applies the ACLs of a switch at one stage. Answers pass those of incoming packets: the switch balances
// Services, and OVN tracks all connections of its ports then.
func (w walker) applyACLs(sw *lswitch, tracked bool, at aclStage) []End {
	if sw == nil || tracked && at != aclLeaves && w.isAnswer(sw) {
		return nil
	}
	for _, a := range sw.acls {
		if a.stage != at || !w.matchHolds(a.match, w.inport, tracked) {
			continue
		}
		switch a.action {
		case "allow":
			return nil
		case "reject":
			return w.endWith(Dropped, "rejected: ACL %s", a.id)
		}
		return w.endWith(Dropped, "ACL %s", a.id)
	}
	return nil
}

// isAnswer reports whether a connection to the port that the packet came in by can be what the packet answers.
func (w walker) isAnswer(sw *lswitch) bool {
	if !w.p.Reply {
		return false
	}
	w.p.Reply, w.outport = false, w.inport
	w.p.Src, w.p.Dst, w.p.SrcPort, w.p.DstPort = w.p.Dst, w.p.Src, w.p.DstPort, w.p.SrcPort
	return w.applyACLs(sw, true, aclLeaves) == nil
}

func (w walker) matchHolds(m match, inport string, tracked bool) bool {
	return m.holds(env{w.p, inport, w.outport, w.mark, tracked, w.forced, w.ownZone().sets, w.ownZone().groups})
}

// fromRouter is a packet that a router gives to the node switch, for one of its ports.
func (w walker) fromRouter(port switchPort) []End {
	w.inport = w.names.NodeSwitchToRouter(w.node)
	if sw := w.ownZone().switches[port.sw]; sw != nil {
		next, refused := w.enterSwitch(sw, false)
		if refused == nil {
			refused = next.applyACLs(sw, false, aclBalanced)
		}
		if refused != nil {
			return refused
		}
		w = next
	}
	return w.deliverToPort(port)
}

// deliverToPort hands the packet to a pod, or to the host where the port is its management port.
func (w walker) deliverToPort(port switchPort) []End {
	if port.name == w.names.HostPort(w.node) {
		w.iif = w.names.ManagementPort()
		return w.addStep("to the management port").enterHost()
	}
	w.outport = port.name
	if refused := w.applyACLs(w.ownZone().switches[port.sw], true, aclLeaves); refused != nil {
		return refused
	}
	return w.endWith(ToPod, "%s", port.name)
}

// enterRouter is a logical router: first a route must match, then the policies may send the packet elsewhere.
func (w walker) enterRouter(name, inport string) []End {
	if w.hops++; w.hops > maxHops {
		return w.endWith(Dropped, "a loop")
	}
	r := w.ownZone().routers[name]
	switch {
	case r == nil:
		return w.endWith(Dropped, "no router %s", name)
	case name == w.names.GatewayRouter(w.node):
		w.balancer = nil // the switch's part does not matter any more
		return w.balanceGroups(r.groups, func(w walker) []End {
			w.forced = r.forceSNAT && w.balancer != nil && !w.balancer.skipSNAT
			return w.routePacket(r, inport)
		})
	}
	w.forced = false
	return w.routePacket(r, inport)
}

// routePacket finds the next hop.
func (w walker) routePacket(r *router, inport string) []End {
	hops := r.lookupRoute(w.p)
	if len(hops) == 0 {
		return w.endWith(Dropped, "%s has no route to %s from %s", r.name, w.p.Dst, w.p.Src)
	}
	p := w.matchingPolicy(r, inport)
	if p == nil {
		return w.forwardEach(r, hops)
	}
	if p.mark != 0 {
		w.mark = p.mark
	}
	w = w.addStep("policy %d %s: %s", p.priority, p.id, p.action)
	switch p.action {
	case "drop":
		return w.endWith(Dropped, "policy %s", p.id)
	case "allow":
		return w.forwardEach(r, hops)
	}
	return w.forwardEach(r, p.nexthops)
}

// forwardEach takes every way that ECMP may take.
func (w walker) forwardEach(r *router, hops []netip.Addr) []End {
	if len(hops) == 0 {
		return w.endWith(Dropped, "a reroute to nowhere")
	}
	var ends []End
	for _, h := range hops {
		ends = append(ends, w.forwardVia(r, h)...)
	}
	return ends
}

// matchingPolicy returns the first policy that matches. OVN has none of which a next hop is on no link of the router.
func (w walker) matchingPolicy(r *router, inport string) *policy {
	for i, p := range r.policies {
		if w.matchHolds(p.match, inport, false) && r.reachesAll(p.nexthops) {
			return &r.policies[i]
		}
	}
	return nil
}

// reachesAll reports whether all of some next hops are on links of the router.
func (r *router) reachesAll(nexthops []netip.Addr) bool {
	for _, via := range nexthops {
		reached := false
		for _, ps := range r.networks {
			reached = reached || slices.ContainsFunc(ps, func(p netip.Prefix) bool { return p.Contains(via) })
		}
		if !reached {
			return false
		}
	}
	return true
}

// lookupRoute is the next hops, of which ECMP takes one, or the destination itself where it is on link.
func (r *router) lookupRoute(p Packet) []netip.Addr {
	var hops []netip.Addr
	rank := 0
	for _, route := range r.routes {
		key := p.Dst
		if route.src {
			key = p.Src
		}
		switch {
		case len(hops) > 0 && route.routeRank() < rank:
			return hops
		case !route.prefix.Contains(key):
			continue
		case route.discard:
			return nil
		case route.port != "":
			return []netip.Addr{p.Dst}
		}
		hops, rank = append(hops, route.nexthop), route.routeRank()
	}
	return hops
}

// forwardVia finds who has the next hop's address, as seen from a router's ports.
func (w walker) forwardVia(r *router, via netip.Addr) []End {
	w = w.addStep("%s forwards to %s", r.name, via)
	gr, join := w.names.GatewayRouter(w.node), w.names.GatewayToJoin(w.node)
	if r.name == gr {
		return w.forwardFromGateway(r, via)
	}
	if g := w.ownZone().routers[gr]; g != nil && (g.hasAddress(via) ||
		w.isBound(nextHop{w.names.RouterToJoin(), via}, w.node, join)) {
		w = w.crossSwitch(w.names.JoinSwitch(), w.names.JoinToRouter()).addStep("gateway router")
		return w.enterRouter(gr, join)
	}
	if port, ok := w.ownZone().podPort(w.names.NodeSwitch(w.node), via); ok {
		return w.fromRouter(port)
	}
	for _, name := range w.nodes {
		port, c := w.names.RouterToTransit(name), w.zones[name].routers[w.names.ClusterRouter()]
		bound := w.isBound(nextHop{w.names.RouterToTransit(w.node), via}, name, port)
		if name != w.node && c != nil && (c.hasAddress(via) || bound) && w.knowsZone(name) {
			w.node, w.mark = name, 0 // Geneve carries no packet mark between zones
			return w.enterRouter(c.name, port)
		}
	}
	if port := w.ownZone().links[via]; port != "" && r.name == plan.DefaultNames().ClusterRouter() {
		return w.enterNetwork(port)
	}
	return w.endWith(Dropped, "nobody has %s", via)
}

// enterNetwork goes on from the default network's cluster router, by the gateway router of the network that a port of
// it leads to.
func (w walker) enterNetwork(port string) []End {
	w.names = plan.Names{Network: plan.LinkedNetwork(port, w.node)}
	return w.addStep("into network %s", w.names.Network).enterRouter(w.names.GatewayRouter(w.node),
		w.names.GatewayToExternal(w.node))
}

// isBound says whether this zone binds a next hop to the hardware address of another router's port; whether that port
// has the address does not matter.
func (w walker) isBound(via nextHop, node, port string) bool {
	mac := w.ownZone().bound[via]
	return mac != "" && w.zones[node].macs[port] == mac
}

// knowsZone says whether this zone has a port on the transit switch for another one.
func (w walker) knowsZone(node string) bool {
	_, ok := w.ownZone().ports[w.names.TransitToRouter(node)]
	return ok
}

func (r *router) hasAddress(a netip.Addr) bool {
	for _, ps := range r.networks {
		for _, p := range ps {
			if p.Addr() == a {
				return true
			}
		}
	}
	return false
}

// forwardFromGateway goes back into the cluster, or out, translated.
func (w walker) forwardFromGateway(r *router, via netip.Addr) []End {
	if c := w.ownZone().routers[w.names.ClusterRouter()]; c != nil && c.hasAddress(via) {
		w = w.translateSource(r, w.names.GatewayToJoin(w.node)).crossSwitch(w.names.JoinSwitch(),
			w.names.JoinToGateway(w.node))
		return w.enterRouter(w.names.ClusterRouter(), w.names.RouterToJoin())
	}
	w = w.translateSource(r, w.names.GatewayToExternal(w.node))
	w = w.crossSwitch(w.names.ExternalSwitch(w.node), w.names.ExternalToGateway(w.node))
	if w.names != plan.DefaultNames() {
		return w.enterDefaultNetwork()
	}
	return w.enterBridge(plan.PatchPort)
}

// enterDefaultNetwork goes on from the gateway router of a network beside the default one: by the cluster router of the
// same node, with the mark that the packet has.
func (w walker) enterDefaultNetwork() []End {
	link := w.names.LinkToNetwork(w.node)
	if _, linked := w.ownZone().macs[link]; !linked {
		return w.endWith(Dropped, "no port %s", link)
	}
	w.names = plan.DefaultNames()
	return w.addStep("out of its network").enterRouter(w.names.ClusterRouter(), link)
}

// translateSource has the source that a packet gets where it leaves the gateway router by a port. Rows with a match
// come before lb_force_snat_ip=router_ip, and others after it. A reply of an inbound connection is translated back by
// its connection, not by a row.
func (w walker) translateSource(r *router, port string) walker {
	w.outport = port
	first := w.forced && !w.p.Unanswered
	for _, n := range r.nat {
		if first && !n.matches {
			break
		}
		if n.logical.Contains(w.p.Src) && !w.p.Reply && w.matchHolds(n.match, "", false) {
			w.p.Src = n.external
			return w.addStep("NAT %s", n.id)
		}
	}
	if first {
		return w.asRouter(r)
	}
	return w
}

// asRouter gives a packet the address of the port by which it leaves.
func (w walker) asRouter(r *router) walker {
	for _, p := range r.networks[w.outport] {
		if p.Addr().Is4() == w.p.Src.Is4() {
			w.p.Src = p.Addr()
			return w.addStep("%s translates to %s", r.name, w.p.Src)
		}
	}
	return w
}

// crossSwitch walks a switch between routers, or to the bridge, and returns the marks that it sets: it can do nothing
// else.
func (w walker) crossSwitch(name, inport string) walker {
	sw := w.ownZone().switches[name]
	if sw == nil {
		return w
	}
	w.inport = inport
	out, _ := w.enterSwitch(sw, false)
	return out
}
