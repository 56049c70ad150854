package host

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/egret-net/egret/internal/plane/route"
	"github.com/egret-net/egret/internal/world"
)

// TestHostTables: a table is known by its number, its name in rt_tables and its VRF, with the families in which it has
// a default route, or one for each half of all addresses, and those in which one refuses the rest. Of routes of this
// agent's it only says that there are some.
func TestHostTables(t *testing.T) {
	everywhere := netip.MustParsePrefix("0.0.0.0/0")
	have := hostTables(route.Host{
		Links: []route.Link{{Name: "red", Kind: "vrf", Table: 200}, {Name: "eth1", Kind: "veth", Table: 200}},
		Routes: []route.Route{{Table: 100, Dst: everywhere},
			{Table: 100, Dst: netip.MustParsePrefix("::/0"), Ours: true}, {Table: 1003, Dst: everywhere, Ours: true}, {Table: 200, Dst: netip.MustParsePrefix("10.0.0.0/8")},
			{Table: 200, Dst: netip.MustParsePrefix("0.0.0.0/1")}, {Table: 200, Dst: netip.MustParsePrefix("::/1")},
			{Table: 200, Dst: netip.MustParsePrefix("8000::/1")},
			{Table: 254, Dst: netip.MustParsePrefix("10.96.0.0/16"), Ours: true}},
		Refusals: []route.Route{{Table: 200, Dst: everywhere}, {Table: 300, Dst: netip.MustParsePrefix("10.0.0.0/8")}},
	}, map[string]int{"blue": 100, "azure": 100})
	want := []world.HostTable{
		{ID: 100, Names: []string{"azure", "blue"}, Routes: [2]bool{true, false}, Default: [2]bool{true, false},
			Ours: true},
		{ID: 200, Names: []string{"red"}, VRF: true, Routes: [2]bool{true, true}, Default: [2]bool{false, true},
			Refuses: [2]bool{true, false}},
		{ID: 1003, Ours: true},
	}
	if d := cmp.Diff(want, have); d != "" {
		t.Error(d)
	}
}
