package world

import (
	"net/netip"
	"slices"
)

// HostTable is a routing table of this host: one that has a name or routes.
type HostTable struct {
	ID uint32
	// Names are those of rt_tables, and that of the VRF device whose table it is.
	Names []string
	VRF   bool
	// Default says, by Family, whether it has a default route.
	Default [2]bool
}

func (t HostTable) equal(o HostTable) bool {
	return t.ID == o.ID && t.VRF == o.VRF && t.Default == o.Default && slices.Equal(t.Names, o.Names)
}

// Table is the routing table that an object names. One that is named by its number is always there.
func (h *Host) Table(t RoutingTable) (HostTable, bool) {
	for _, have := range h.Tables {
		if t.Number != 0 && have.ID == t.Number || t.Number == 0 && slices.Contains(have.Names, t.Name) {
			return have, true
		}
	}
	return HostTable{ID: t.Number}, t.Number != 0
}

// LocalOnly is the address at which a node's switch balances to its own pods only, by node port: the way that
// connections from outside take, with their source, in local gateway mode (seed external-traffic-policy.md).
func LocalOnly(f Family) netip.Addr {
	return [...]netip.Addr{netip.AddrFrom4([4]byte{169, 254, 169, 3}), netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x69,
		15: 3})}[f]
}
