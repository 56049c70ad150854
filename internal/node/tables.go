package node

import (
	"cmp"
	"net/netip"
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
	to := map[int]map[netip.Prefix]bool{}
	for _, r := range h.Routes {
		if r.Ours {
			continue
		}
		if to[r.Table] == nil {
			to[r.Table] = map[netip.Prefix]bool{}
		}
		to[r.Table][r.Dst] = true
		table(r.Table).Default = defaults(to[r.Table])
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

// halves are what VPN clients write in the place of a default route, so that the host's own stays below it.
var halves = [2][2]netip.Prefix{
	{netip.MustParsePrefix("0.0.0.0/1"), netip.MustParsePrefix("128.0.0.0/1")},
	{netip.MustParsePrefix("::/1"), netip.MustParsePrefix("8000::/1")},
}

// defaults says in which families routes to these prefixes lead everywhere.
func defaults(to map[netip.Prefix]bool) (is [2]bool) {
	for _, f := range [...]world.Family{world.V4, world.V6} {
		is[f] = to[netip.PrefixFrom(f.Unspecified(), 0)] || to[halves[f][0]] && to[halves[f][1]]
	}
	return is
}
