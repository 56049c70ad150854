package egressip

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/world"
)

// steering is what a pod's node does with a served pod's packets of a family.
type steering struct {
	action   string // "reroute"; "drop"; "": the path that the pod had, with its node's own address
	nexthops []string
	to       []world.Assignment // the holders that the next hops lead to, by address
}

// steer reroutes to the nodes that are ready, drops while the EgressIP is in force and nobody is, or does nothing.
//
// An address leads to the node that it is assigned to, if that holds it and is alive; else to a live node that is leaving it, while its successor gets
// ready. Where that is true of no address, assigned holders that are not heard of may be all that is left.
func steer(w *world.View, e *world.EgressIP, f world.Family) steering {
	if !w.EgressIP(e.Name).Active(f) {
		return steering{}
	}
	if hops, to := nextHops(w, e, f); len(hops) > 0 {
		return steering{"reroute", hops, to}
	}
	if e.InForce[f] || e.DropWhenUnassigned {
		return steering{action: "drop"}
	}
	return steering{}
}

// assignedHolders are the nodes that hold what they are assigned.
func assignedHolders(w *world.View, e *world.EgressIP, f world.Family, alive bool) []world.Assignment {
	var out []world.Assignment
	for _, a := range e.Items {
		if world.FamilyOf(a.IP) == f && w.Holds(a.Node, e.Name, a.IP) && w.Alive(a.Node) == alive {
			out = appendHolder(out, w, e, a)
		}
	}
	return out
}

// leavingHolders are live nodes that still hold what was moved away from them, or given up there: until any other is ready, if one is to be.
func leavingHolders(w *world.View, e *world.EgressIP, f world.Family) []world.Assignment {
	if !e.HasItems(f) {
		return nil
	}
	var out []world.Assignment
	for _, ip := range f.OfAddrs(e.IPs) {
		if node := standIn(w, e, ip); node != "" {
			out = appendHolder(out, w, e, world.Assignment{Node: node, IP: ip})
		}
	}
	return out
}

// standIn is the node that answers for an address while nobody holds it who is assigned it: of the live ones that are leaving it the one that left last, for
// those before it have given way to it already. "" is none.
func standIn(w *world.View, e *world.EgressIP, ip netip.Addr) string {
	for _, l := range slices.Backward(e.Leaving) {
		if l.IP == ip && w.Holds(l.Node, e.Name, ip) && w.Alive(l.Node) {
			return l.Node
		}
	}
	return ""
}

// instead is a holder, or the node that this one has given way to; "" if that is no node of the cluster.
func instead(w *world.View, e *world.EgressIP, node string, ip netip.Addr) string {
	if to, yielded := w.Yielded(e.Name, ip); yielded && node == w.Self {
		return to
	}
	return node
}

func appendHolder(list []world.Assignment, w *world.View, e *world.EgressIP, a world.Assignment) []world.Assignment {
	if a.Node = instead(w, e, a.Node, a.IP); a.Node == "" {
		return list
	}
	return append(list, a)
}

// nextHops lead to those who are ready, if anybody is: by slots where there are several addresses.
func nextHops(w *world.View, e *world.EgressIP, f world.Family) (hops []string, to []world.Assignment) {
	if n := len(f.OfAddrs(e.IPs)); n > 1 && n <= world.Slots && w.Config.SlotTransit(0, 1, f).IsValid() {
		return slotted(w, e, f)
	}
	for _, holders := range [][]world.Assignment{
		assignedHolders(w, e, f, true), leavingHolders(w, e, f), assignedHolders(w, e, f, false),
	} {
		if hops := nexthopsOf(w, e, holders, f); len(hops) > 0 {
			return hops, holders
		}
	}
	return nil, nil
}

// nexthopsOf are addresses on the cluster router's side: this node's own gateway router or host, or the other zones' transit ports.
func nexthopsOf(w *world.View, e *world.EgressIP, holders []world.Assignment, f world.Family) []string {
	seen := map[netip.Addr]bool{}
	var hops []string
	for _, a := range holders {
		n := w.Node(a.Node)
		if n == nil || n.ID == 0 {
			continue
		}
		hop, ok := w.Config.Transit(n.ID, f).Addr(), true
		if a.Node == w.Self {
			hop, ok = ownHop(w, e, n, f)
		}
		if ok && !seen[hop] {
			seen[hop] = true
			hops = append(hops, hop.String())
		}
	}
	return hops
}

// hosted are the addresses of a family that this node translates to: those that it is assigned, else one that is leaving it, else the first that lingers
// because it was given way for. Never two kinds: two rows that translate the same pods would leave it open which one does.
func hosted(w *world.View, e *world.EgressIP, f world.Family) []netip.Addr {
	now := w.EgressIP(e.Name)
	var assigned []netip.Addr
	for _, a := range now.Items {
		if _, yielded := w.Yielded(e.Name, a.IP); a.Node == w.Self && world.FamilyOf(a.IP) == f && !yielded {
			assigned = append(assigned, a.IP)
		}
	}
	if len(assigned) > 0 {
		return assigned
	}
	for _, l := range now.Leaving {
		if l.Node == w.Self && world.FamilyOf(l.IP) == f && w.Holds(w.Self, e.Name, l.IP) {
			return []netip.Addr{l.IP}
		}
	}
	for _, ip := range f.OfAddrs(w.Lingering(e.Name)) {
		if mayLinger(w, e.Name, ip) {
			return []netip.Addr{ip}
		}
	}
	return nil
}
