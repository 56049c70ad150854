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
	// Routes says, by Family, whether it has any route, and Default whether it has a default route. The kernel goes on
	// to its next rule, and at last to the main table, with a destination that the table has no route to.
	Routes, Default [2]bool
	// Refuses says, by Family, that a default route of type unreachable, prohibit or blackhole ends the table: then the
	// kernel goes on with no destination.
	Refuses [2]bool
	// Ours: it has routes of this agent's, as the tables of links with egress IPs have.
	Ours bool
}

func (t HostTable) equalTable(o HostTable) bool {
	return t.ID == o.ID && t.VRF == o.VRF && t.Ours == o.Ours && t.Routes == o.Routes && t.Default == o.Default &&
		t.Refuses == o.Refuses && slices.Equal(t.Names, o.Names)
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
