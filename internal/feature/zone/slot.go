package zone

import (
	"net/netip"

	"github.com/egret-net/egret/internal/world"
)

// slotAddr is Config.SlotTransit or Config.SlotJoin.
type slotAddr func(slot, id int, f world.Family) netip.Prefix

// slotAddresses are a router port's addresses in all slots, so that next hops there are on its link.
func (z ownPart) slotAddresses(id int, at slotAddr) []string {
	var out []string
	for _, f := range z.Families() {
		for slot := range z.w.Slots(z.Name, f) {
			out = append(out, at(slot, id, f).String())
		}
	}
	return out
}

// bindNextHops makes the default network's cluster router send what has one of a node's addresses in the common slots
// as next hop to the node's hardware address; for other slots, who steers by one does (feature egressip). The port at
// the other end need not have those addresses, and has not where the node's agent is of a version that knows no slots:
// a router takes a packet by its hardware address, and the packet names no next hop. That spares a logical flow or more
// for each node and slot in every zone, and a gateway router with several addresses, of which
// lb_force_snat_ip=router_ip (ovn-nb(5)) would have to pick one.
func (z ownPart) bindNextHops(port string, id int, at slotAddr, mac string) {
	if z.ID != 0 {
		return
	}
	for _, f := range z.Families() {
		for slot := range world.CommonSlots {
			z.out.AddMACBinding(port, at(slot, id, f).Addr().String(), mac)
		}
	}
}
