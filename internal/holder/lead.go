package holder

import (
	"net/netip"

	"github.com/egret-net/egret/internal/world"
)

// Ready is the live node that packets for an address of an object are led to, or "": the one that it is assigned to;
// the one that it is leaving, while its successor gets ready.
func Ready(v *world.View, object string, ip netip.Addr) string {
	if node := assignedHolder(v, object, ip, true); node != "" || v.PlacementOf(object).Assignee(ip) == "" {
		return node
	}
	return leaderOfLeaving(v, object, ip)
}

// LastResort is where packets for an address are led when no address of its object has a ready node: to a node that
// gives it up and has no successor, or to one that does not answer.
func LastResort(v *world.View, object string, ip netip.Addr) string {
	if node := leaderOfLeaving(v, object, ip); node != "" && v.PlacementOf(object).HasItems(world.FamilyOf(ip)) {
		return node
	}
	return assignedHolder(v, object, ip, false)
}

// assignedHolder is the node that an address is assigned to, if it holds it and is alive, or is not; else "". An
// address that this very node has yielded, while it cannot be told otherwise, is held by another machine.
func assignedHolder(v *world.View, object string, ip netip.Addr, alive bool) string {
	node := v.PlacementOf(object).Assignee(ip)
	holds := v.Holds(node, object, ip) || node == v.Self && v.Yielded(object, ip) != nil
	if to := alternativeHolder(v, object, node, ip); holds && v.Alive(node) == alive && mayLead(v, to) {
		return to
	}
	return ""
}

func leaderOfLeaving(v *world.View, object string, ip netip.Addr) string {
	if to := alternativeHolder(v, object, StandIn(v, object, ip), ip); mayLead(v, to) {
		return to
	}
	return ""
}

// Promised is the live node that an address is assigned to, and that is about to hold it, or "". Packets that come
// there before it translates are dropped: by its bridge, if they are from another node; else by the leak filter. So the
// first packet with the egress IP waits neither for its report nor for what this node does upon that. After a time
// without a report it is waited for as if nothing led there (Machine).
func Promised(v *world.View, object string, ip netip.Addr) string {
	node := v.PlacementOf(object).Assignee(ip)
	late := v.Overdue(world.EgressAddress{Object: object, IP: ip}) == node
	if node == "" || late || v.Yielded(object, ip) != nil || !v.Alive(node) || !mayLead(v, node) {
		return ""
	}
	return node
}

// mayLead says whether a node has a number, and has followed what this one has seen since its agent started, or need
// not.
func mayLead(v *world.View, node string) bool {
	n := v.Node(node)
	return n != nil && n.ID != 0 && v.Cleared(node)
}

// alternativeHolder is a holder, or the node that this one yields to; "" if that is no node of the cluster.
func alternativeHolder(v *world.View, object, node string, ip netip.Addr) string {
	if y := v.Yielded(object, ip); y != nil && node == v.Self {
		return y.To
	}
	return node
}
