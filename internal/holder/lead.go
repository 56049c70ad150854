package holder

import (
	"cmp"
	"net/netip"

	"github.com/egret-net/egret/internal/world"
)

// Leads are the nodes that packets for one address of an object can be led to. "" is no node.
type Leads struct {
	// Ready is alive: the node that the address is assigned to, if it holds it; else, if it is assigned, the one that
	// it is leaving, while its successor gets ready.
	Ready string
	// Promised is alive, assigned the address, and about to hold it. Packets that come there before it translates are
	// dropped: by its bridge, if they are from another node; else by the leak filter. So the first packet with the
	// egress IP waits neither for its report nor for what this node does upon that. After a time without a report it is
	// waited for as if nothing led there (Machine).
	Promised string
	// LastResort is led to when no address of the object has a ready node: one that gives the address up and has no
	// successor, or one that holds it and does not answer.
	LastResort string
}

// LeadsOf returns the nodes for an address of an object, by its key.
func LeadsOf(v *world.View, object string, ip netip.Addr) (l Leads) {
	p, yield := v.PlacementOf(object), v.Yielded(object, ip)
	leaving := leaderFor(v, StandIn(v, p, object, ip), yield)
	node := p.Assignee(ip)
	if node != "" {
		l.leadToAssigned(v, world.EgressAddress{Object: object, IP: ip}, node, yield)
		l.Ready = cmp.Or(l.Ready, leaving)
	}
	if leaving != "" && p.HasItems(world.FamilyOf(ip)) {
		l.LastResort = leaving
	}
	return l
}

// leadToAssigned has packets led to the node that an address is assigned to. An address that this very node has
// yielded, while it cannot be told otherwise, is held by another machine.
func (l *Leads) leadToAssigned(v *world.View, a world.EgressAddress, node string, yield *world.Yield) {
	holder := ""
	if v.Holds(node, a.Object, a.IP) || node == v.Self && yield != nil {
		holder = leaderFor(v, node, yield)
	}
	if !v.Alive(node) {
		l.LastResort = holder
		return
	}
	if l.Ready = holder; v.Overdue(a) != node && yield == nil {
		l.Promised = leaderFor(v, node, nil)
	}
}

// leaderFor is a node, or the one that this node yields to in its place; "" if that has no number, or has not followed
// what this node has seen since its agent started, and must.
func leaderFor(v *world.View, node string, yield *world.Yield) string {
	if node == v.Self && yield != nil {
		node = yield.To
	}
	if node == "" {
		return ""
	}
	if n := v.Node(node); n == nil || n.ID == 0 || !v.Cleared(node) {
		return ""
	}
	return node
}
