package host

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/route"
	"github.com/egret-net/egret/internal/world"
)

// hostTables are the routing tables that EgressServices can name: those that have a name, and those that have routes.
// Of routes of this agent's it only says that there are some, and none of the main table's is a reason to say so.
func hostTables(h route.Host, names map[string]int) []world.HostTable {
	tables := map[int]*world.HostTable{}
	table := func(id int) *world.HostTable {
		if tables[id] == nil {
			tables[id] = &world.HostTable{ID: uint32(id)}
		}
		return tables[id]
	}
	to := map[int]map[netip.Prefix]bool{}
	for _, r := range h.Routes {
		if r.Ours {
			if r.Table != plan.MainTable {
				table(r.Table).Ours = true
			}
			continue
		}
		if to[r.Table] == nil {
			to[r.Table] = map[netip.Prefix]bool{}
		}
		to[r.Table][r.Dst] = true
		table(r.Table).Routes[world.FamilyOf(r.Dst.Addr())] = true
		table(r.Table).Default = defaultFamilies(to[r.Table])
	}
	for _, r := range h.Refusals {
		if r.Dst.Bits() == 0 {
			table(r.Table).Refuses[world.FamilyOf(r.Dst.Addr())] = true
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

// halves are the two routes that VPN clients write instead of a default route, so that the host's own stays below them.
var halves = [2][2]netip.Prefix{
	{netip.MustParsePrefix("0.0.0.0/1"), netip.MustParsePrefix("128.0.0.0/1")},
	{netip.MustParsePrefix("::/1"), netip.MustParsePrefix("8000::/1")},
}

// defaultFamilies says in which families routes to these prefixes lead everywhere.
func defaultFamilies(to map[netip.Prefix]bool) (is [2]bool) {
	for _, f := range [...]world.Family{world.V4, world.V6} {
		is[f] = to[netip.PrefixFrom(f.Unspecified(), 0)] || to[halves[f][0]] && to[halves[f][1]]
	}
	return is
}
