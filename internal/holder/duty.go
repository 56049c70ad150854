package holder

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Duty is what this node does for an address: it translates to it, and answers ARP and ND for it or not.
type Duty struct {
	IP      netip.Addr
	Answers bool
}

// Duties are for the addresses of an object, by its key, that this node is assigned and that are listed; else for one
// that it is leaving; else for the first of those that it is assigned and yields, while it drains. Never two kinds: two
// rows that translate the same pods would leave it open which one does.
func Duties(v *world.View, object string, f world.Family) []Duty {
	p := v.PlacementOf(object)
	if p == nil {
		return nil
	}
	var assigned, draining []Duty
	for _, a := range p.Items {
		if a.Node != v.Self || world.FamilyOf(a.IP) != f || !isListed(v, object, a.IP) {
			continue
		}
		if y := v.Yielded(object, a.IP); y == nil {
			assigned = append(assigned, Duty{a.IP, true})
		} else if y.Draining && len(draining) == 0 {
			draining = append(draining, Duty{IP: a.IP})
		}
	}
	if len(assigned) > 0 {
		return assigned
	}
	for _, l := range p.Leaving {
		if l.Node == v.Self && world.FamilyOf(l.IP) == f && v.Holds(v.Self, object, l.IP) {
			return []Duty{{l.IP, answersLeaving(v, p, object, l.IP)}}
		}
	}
	return draining
}

// isListed reports whether an address is known to be one of the object. A Service can get an address after pods have
// left it. A node that sees the EgressService's status before the Service would translate these pods to that address.
// It goes on with an address that it holds though the Service has lost it.
func isListed(v *world.View, object string, ip netip.Addr) bool {
	return ref.OfKey(object).Kind != ref.EgressService || slices.Contains(v.BalancersAt(ip), object) ||
		v.Holds(v.Self, object, ip)
}

// answersLeaving says whether this node still answers for an address that it is leaving. It does until its successor
// does, unless it yields the address, another node left it later, or no successor is assigned.
func answersLeaving(v *world.View, p *world.Placement, object string, ip netip.Addr) bool {
	successor := p.Assignee(ip)
	if successor == "" || v.Yielded(object, ip) != nil || v.Holds(successor, object, ip) && v.Alive(successor) {
		return false
	}
	last := StandIn(v, p, object, ip)
	return last == "" || last == v.Self
}

// StandIn is the node that answers for an address of an object with a placement while nobody holds it who is assigned
// it: of the live ones that are leaving it the one that left last, for those before it have yielded to it already. ""
// stands for no node.
func StandIn(v *world.View, p *world.Placement, object string, ip netip.Addr) string {
	for _, l := range slices.Backward(p.Leaving) {
		if l.IP == ip && v.Holds(l.Node, object, ip) && v.Alive(l.Node) {
			return l.Node
		}
	}
	return ""
}
