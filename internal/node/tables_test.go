package node

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/egret-net/egret/internal/plane/route"
	"github.com/egret-net/egret/internal/world"
)

// TestHostTables: a table is known by its number, its name in rt_tables and its VRF, with the families in which it has
// a default route, or one for each half of all addresses. Routes of this agent are none of it.
func TestHostTables(t *testing.T) {
	everywhere := netip.MustParsePrefix("0.0.0.0/0")
	have := hostTables(route.Host{
		Links: []route.Link{{Name: "red", Kind: "vrf", Table: 200}, {Name: "eth1", Kind: "veth", Table: 200}},
		Routes: []route.Route{{Table: 100, Dst: everywhere},
			{Table: 100, Dst: netip.MustParsePrefix("::/0"), Ours: true}, {Table: 1003, Dst: everywhere, Ours: true}, {Table: 200, Dst: netip.MustParsePrefix("10.0.0.0/8")},
			{Table: 200, Dst: netip.MustParsePrefix("0.0.0.0/1")}, {Table: 200, Dst: netip.MustParsePrefix("::/1")},
			{Table: 200, Dst: netip.MustParsePrefix("8000::/1")}},
	}, map[string]int{"blue": 100, "azure": 100})
	want := []world.HostTable{
		{ID: 100, Names: []string{"azure", "blue"}, Default: [2]bool{true, false}},
		{ID: 200, Names: []string{"red"}, VRF: true, Default: [2]bool{false, true}},
	}
	if d := cmp.Diff(want, have); d != "" {
		t.Error(d)
	}
}
