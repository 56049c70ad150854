package world

import (
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
