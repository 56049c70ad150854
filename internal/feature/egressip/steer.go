package egressip

import (
	"cmp"
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
	to       []lead // by address
	nodes    []string
	splits   bool // fragments of one datagram between the next hops
}

// lead is the node that an address's next hop leads to; ahead if it does not say yet that it holds the address.
type lead struct {
	world.Assignment
	ahead plan.Ahead
}

// nextHop is the address that leads to a node by an ECMP slot. port and mac say what binds it, where no other owner
// does, and OVN does not know it by the port at the other end.
type nextHop struct {
	addr      netip.Addr
	port, mac string
}

// steerPods reroutes to the nodes that are ready, or to those that are about to be for the first time. It drops while
// the EgressIP is in force without a ready node, or while its packets are unknown. Otherwise it does nothing.
func (n logicalNetwork) steerPods(w *world.View, e *world.EgressIP, f world.Family) steering {
	if !w.EgressIP(e.Name).Active(f) {
		return steering{}
	}
	if s := n.rerouteToSlots(w, e, f); len(s.nextHops) > 0 && !e.TrafficUnknown {
		return s
	}
	if e.InForce[f] || e.DropWhenUnassigned {
		return steering{action: "drop"}
	}
	return steering{}
}

// rerouteToSlots gives each address an ECMP slot, in their order, and each slot a next hop. Number and order of the
// next hops are the same whoever is alive, so that OVN, whose choice among them has no memory, goes on with every
// connection as it was, but for those of a slot whose address has lost its node, or got it back. Such a slot leads to
// the node of another address.
func (n logicalNetwork) rerouteToSlots(w *world.View, e *world.EgressIP, f world.Family) steering {
	s, ips := steering{action: "reroute", splits: w.Config.UserspaceOVS && f == world.V6}, e.SlotAddresses(f)
	leads := n.leadsTo(w, e, f, ips)
	own, all := nodesOf(leads, func(l holder.Leads) string { return cmp.Or(l.Ready, l.Promised) })
	if len(all) == 0 {
		own, all = nodesOf(leads, func(l holder.Leads) string { return l.LastResort })
	}
	if s.nodes = all; len(all) == 0 {
		return steering{}
	}
	for slot, node := range own {
		if node == "" {
			node = all[slot%len(all)]
		}
		hop, ok := n.nextHopTo(w, e, node, slot, len(ips), f)
		if ok && own[slot] != "" {
			ahead := plan.Ahead(leads[slot].Ready == "" && leads[slot].Promised != "")
			s.to = append(s.to, lead{world.Assignment{Node: node, IP: ips[slot]}, ahead})
		}
		if ok && !slices.ContainsFunc(s.nextHops, func(h nextHop) bool { return h.addr == hop.addr }) {
			s.nextHops = append(s.nextHops, hop)
		}
	}
	return s
}

// hasUnreported says whether any of the nodes does not say yet that it holds its address.
func (s steering) hasUnreported() bool {
	return slices.ContainsFunc(s.to, func(l lead) bool { return bool(l.ahead) })
}

// leadsTo returns where packets for each address can be led. Nobody waits for a node that is about to hold an address
// where pods' packets have an earlier way. No packet of a network of users is led to a node that cannot translate it.
func (n logicalNetwork) leadsTo(w *world.View, e *world.EgressIP, f world.Family, ips []netip.Addr) []holder.Leads {
	first, out := firstTime(e, f), make([]holder.Leads, len(ips))
	for i, ip := range ips {
		if out[i] = holder.LeadsOf(w, e.Name, ip); !first {
			out[i].Promised = ""
		}
		for _, node := range []*string{&out[i].Ready, &out[i].Promised, &out[i].LastResort} {
			if *node != "" && !n.canTranslate(w, *node, ip) {
				*node = ""
			}
		}
	}
	return out
}

// nodesOf are the nodes of addresses, "" where one has none, and each of them once.
func nodesOf(leads []holder.Leads, nodeOf func(holder.Leads) string) (own, all []string) {
	for _, l := range leads {
		node := nodeOf(l)
		own = append(own, node)
		if node != "" && !slices.Contains(all, node) {
			all = append(all, node)
		}
	}
	return own, all
}

// firstTime says whether an EgressIP is in force for the first time as soon as a node holds an address of it: no node
// has held any that a pod's packets could still be led to.
func firstTime(e *world.EgressIP, f world.Family) bool {
	leaves := func(l world.Leaving) bool { return world.FamilyOf(l.IP) == f }
	return !e.InForce[f] && !slices.ContainsFunc(e.Leaving, leaves)
}

// nextHopTo is beyond this node's own gateway router or host, or in another zone; false for what this node translates
// nowhere. One address alone needs no slot's next hop, and what this node's own host translates has one only, whatever
// the slot.
func (n logicalNetwork) nextHopTo(
	w *world.View, e *world.EgressIP, node string, slot, slots int, f world.Family,
) (hop nextHop, ok bool) {
	c, id := w.Config, w.Node(node).ID
	transit, join := c.SlotTransit(slot, id, f).Addr(), c.SlotJoin(slot, id, f).Addr()
	if slots == 1 {
		transit, join = n.in.TransitAddr(id, f).Addr(), n.in.JoinAddr(id, f).Addr()
	}
	hop, ok = nextHop{transit, n.RouterToTransit(w.Self), n.in.TransitMAC(id)}, true
	if node == w.Self {
		hop = nextHop{port: n.RouterToJoin(), mac: n.in.JoinMAC(id)}
		hop.addr, ok = ownHop(w, e, w.Node(node), f, join)
	}
	if slots == 1 || n.ID == 0 && slot < world.CommonSlots || node == w.Self && hop.addr != join {
		hop.port = ""
	}
	return hop, ok
}

// addPolicy adds the policy that gives pods of a set the next hops, and what binds those of the slots that few
// EgressIPs have: a row a slot and node in each zone would be too many.
func (s steering) addPolicy(n logicalNetwork, e *world.EgressIP, f world.Family, pods string, out *plan.Rows) {
	var addrs []string
	for _, h := range s.nextHops {
		addrs = append(addrs, h.addr.String())
		if h.port != "" {
			out.AddMACBinding(h.port, h.addr.String(), h.mac)
		}
	}
	id, match := policyName(e.Name, f), f.Match()+".src == "+plan.InSet(pods)+onlyTo(e, f)
	out.AddPolicy(n.Names, id, plan.PriorityEgressIP, match, s.action, addrs, nil)
	if s.splits && len(addrs) > 1 {
		s.keepTogether(n, id, match, out)
	}
	if s.action == "drop" {
		plan.Add(&out.Steered, plan.Dropped(egressOf(e.Name, f.Unspecified())), plan.Ahead(false))
	}
	for _, a := range s.to {
		to := plan.Steered{Egress: egressOf(e.Name, a.IP), Node: a.Node, Since: e.Since(a.Assignment)}
		plan.Add(&out.Steered, to, a.ahead)
	}
}

// keepTogether gives all fragments one next hop. OVS in userspace chooses among several by addresses and protocol, and
// in IPv6 all fragments of a datagram but the first have another (44, OVS 3.5, lib/flow.c): no node would have all of
// it. The kernel chooses for datagrams that conntrack has put together, and has no fragments there.
func (s steering) keepTogether(n logicalNetwork, id, match string, out *plan.Rows) {
	hop := []string{s.nextHops[0].addr.String()}
	out.AddPolicy(n.Names, id+"/fragments", plan.PriorityFragments, match+" && ip.is_frag", s.action, hop, nil)
}
