package egressip

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/holder"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// steering is what a pod's node does with a served pod's packets of a family.
type steering struct {
	action   string // "reroute"; "drop"; "": the path that the pod had, with its node's own address
	nextHops []nextHop
	to       []world.Assignment // the nodes that the next hops lead to, by address
}

// nextHop is the address that leads to a node by an ECMP slot. port and mac say what binds it, where no other owner
// does.
type nextHop struct {
	addr      netip.Addr
	port, mac string
}

// steer reroutes to the nodes that are ready, drops while the EgressIP is in force and nobody is, or which packets are
// to be rerouted is not known, or does nothing.
func steer(w *world.View, e *world.EgressIP, f world.Family) steering {
	if !w.EgressIP(e.Name).Active(f) {
		return steering{}
	}
	if s := reroute(w, e, f); len(s.nextHops) > 0 && !e.TrafficUnknown {
		return s
	}
	if e.InForce[f] || e.DropWhenUnassigned {
		return steering{action: "drop"}
	}
	return steering{}
}

// reroute gives each address an ECMP slot, in their order, and each slot a next hop. Number and order of the next hops
// are the same whoever is alive, so that OVN, whose choice among them has no memory, goes on with every connection as
// it was, but for those of a slot whose address has lost its node, or got it back. Such a slot leads to the node of
// another address.
func reroute(w *world.View, e *world.EgressIP, f world.Family) steering {
	s, ips := steering{action: "reroute"}, e.SlotAddresses(f)
	own, all := nodesOf(ips, func(ip netip.Addr) string { return holder.Ready(w, e.Name, ip) })
	if len(all) == 0 {
		own, all = nodesOf(ips, func(ip netip.Addr) string { return holder.LastResort(w, e.Name, ip) })
	}
	if len(all) == 0 {
		return steering{}
	}
	for slot, node := range own {
		if node == "" {
			node = all[slot%len(all)]
		}
		hop, ok := nextHopTo(w, e, node, slot, len(ips), f)
		if ok && own[slot] != "" {
			s.to = append(s.to, world.Assignment{Node: node, IP: ips[slot]})
		}
		if ok && !slices.ContainsFunc(s.nextHops, func(h nextHop) bool { return h.addr == hop.addr }) {
			s.nextHops = append(s.nextHops, hop)
		}
	}
	return s
}

// nodesOf are the nodes of addresses, "" where one has none, and each of them once.
func nodesOf(ips []netip.Addr, nodeOf func(netip.Addr) string) (own, all []string) {
	for _, ip := range ips {
		node := nodeOf(ip)
		own = append(own, node)
		if node != "" && !slices.Contains(all, node) {
			all = append(all, node)
		}
	}
	return own, all
}

// nextHopTo is beyond this node's own gateway router or host, or in another zone; false for what this node translates
// nowhere. One address alone needs no slot's next hop, and what this node's own host translates has one only, whatever
// the slot.
func nextHopTo(w *world.View, e *world.EgressIP, node string, slot, slots int, f world.Family) (hop nextHop, ok bool) {
	c, id, names := w.Config, w.Node(node).ID, plan.DefaultNames()
	transit, join := c.SlotTransit(slot, id, f).Addr(), c.SlotJoin(slot, id, f).Addr()
	if slots == 1 {
		transit, join = c.Transit(id, f).Addr(), c.Join(id, f).Addr()
	}
	hop, ok = nextHop{transit, names.RouterToTransit(w.Self), c.TransitMAC(id)}, true
	if node == w.Self {
		hop = nextHop{port: names.RouterToJoin(), mac: c.JoinMAC(id)}
		hop.addr, ok = ownHop(w, e, w.Node(node), f, join)
	}
	if slot < world.CommonSlots || node == w.Self && hop.addr != join {
		hop.port = ""
	}
	return hop, ok
}

// claim adds the policy that gives pods of a set the next hops, and what binds those of the slots that few EgressIPs
// have: a row a slot and node in each zone would be too many.
func (s steering) claim(e *world.EgressIP, f world.Family, pods string, out *plan.Rows) {
	var addrs []string
	for _, h := range s.nextHops {
		addrs = append(addrs, h.addr.String())
		if h.port != "" {
			out.AddMACBinding(h.port, h.addr.String(), h.mac)
		}
	}
	id, match := namePrefix+e.Name+"/"+f.String(), f.Match()+".src == "+plan.InSet(pods)+onlyTo(e, f)
	out.AddPolicy(plan.DefaultNames(), id, plan.PriorityEgressIP, match, s.action, addrs, nil)
	for _, a := range s.to {
		plan.Claim(&out.Steered, plan.Steered{Egress: egressOf(e.Name, a.IP), Node: a.Node}, plan.None{})
	}
}
