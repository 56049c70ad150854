package node

import (
	"cmp"
	"slices"

	"github.com/egret-net/egret/internal/plane/route"
	"github.com/egret-net/egret/internal/world"
)

// hostTables are the routing tables that EgressServices can name: those that have a name, and those that have routes of
// others than this agent's.
func hostTables(h route.Host, names map[string]int) []world.HostTable {
	tables := map[int]*world.HostTable{}
	table := func(id int) *world.HostTable {
		if tables[id] == nil {
			tables[id] = &world.HostTable{ID: uint32(id)}
		}
		return tables[id]
	}
	for _, r := range h.Routes {
		if r.Ours {
			continue
		}
		if t := table(r.Table); r.Dst.Bits() == 0 {
			t.Default[world.FamilyOf(r.Dst.Addr())] = true
		}
	}
	for name, id := range names {
		table(id).Names = append(table(id).Names, name)
	}
	for _, l := range h.Links {
		if l.Kind == "vrf" {
			t := table(l.Table)
			t.VRF, t.Names = true, append(t.Names, l.Name)
		}
	}
	var out []world.HostTable
	for _, t := range tables {
		slices.Sort(t.Names)
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b world.HostTable) int { return cmp.Compare(a.ID, b.ID) })
	return out
}
