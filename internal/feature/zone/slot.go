package zone

import (
	"net/netip"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// slotAddr is Config.SlotTransit or Config.SlotJoin.
type slotAddr func(slot, id int, f world.Family) netip.Prefix

// slots are a router port's addresses in all slots, so that next hops there are on its link.
func slots(w *world.View, id int, at slotAddr) []string {
	var out []string
	for _, p := range slotPrefixes(w, id, at) {
		out = append(out, p.String())
	}
	return out
}

func slotPrefixes(w *world.View, id int, at slotAddr) []netip.Prefix {
	var out []netip.Prefix
	for _, f := range w.Config.Families() {
		for slot := range world.Slots {
			if p := at(slot, id, f); p.IsValid() {
				out = append(out, p)
			}
		}
	}
	return out
}

// bind makes the cluster router send what has one of a node's slot addresses as next hop to the node's hardware address. The port at the other end
// need not have those addresses, and has not where the node's agent is of a version that knows no slots: a router takes a packet by its hardware
// address, and the packet names no next hop. That spares a logical flow or more for each node and slot in every zone, and a gateway router with
// several addresses, of which lb_force_snat_ip=router_ip (ovn-nb(5)) would have to pick one.
func bind(w *world.View, port string, id int, at slotAddr, mac string, out *plan.Rows) {
	for _, p := range slotPrefixes(w, id, at) {
		ip := p.Addr().String()
		out.AddNB(plan.RowID{Table: "Static_MAC_Binding", Name: port + "/" + ip}, plan.RowID{}, plan.Cols{
			"logical_port": port, "ip": ip, "mac": mac, "override_dynamic_mac": true,
		})
	}
}
