package flow

import (
	"slices"
	"testing"

	"github.com/egret-net/egret/internal/plan"
)

// TestDifferences: flows that differ in nothing but their cookie are the same, others' flows are not looked at, and a
// missing one is told with its owner.
func TestDifferences(t *testing.T) {
	wanted := []line{
		{owner: plan.Owner{Feature: "bridge/n1"}, text: "table=0,priority=105,ip actions=LOCAL"},
		{owner: plan.Owner{Feature: "egressip/prod"}, text: "table=0,priority=100,ip actions=drop"},
	}
	if have := numberLines(wanted)[1]; have != "cookie=2,table=0,priority=100,ip actions=drop" {
		t.Errorf("the second line is asked for as %s", have)
	}
	text := `-priority=105,ip cookie=0x20deff105 actions=LOCAL
+priority=105,ip cookie=0x1 actions=LOCAL
-priority=104,ip cookie=0x20deff105 actions=drop
-table=4 priority=10,arp cookie=0xdeff106 hard_timeout=70 actions=drop
-priority=1 actions=NORMAL
+priority=100,ip cookie=0x2 actions=drop
`
	var have []string
	for _, d := range flowDifferences("breth0", text, wanted) {
		have = append(have, d.String())
	}
	want := []string{
		"flow missing: breth0 priority=100,ip actions=drop (of egressip/prod)",
		"flow unwanted: breth0 priority=104,ip actions=drop",
	}
	if !slices.Equal(have, want) {
		t.Errorf("%q, want %q", have, want)
	}
}

// TestCompare asks a real switch, which has its own spelling: nothing is told of what it has as it is wanted.
func TestCompare(t *testing.T) {
	s, p := start(t)
	want := state("a ip,in_port={eth0} drop", "egressip/prod udp,tp_dst=53 output:{eth0}", "b arp NORMAL")
	if err := p.Grow(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	comparesAs(t, p, want)
	s.Ofctl("--strict", "del-flows", s.Mgmt("br0"), "priority=100,udp,tp_dst=53")
	s.Ofctl("add-flow", s.Mgmt("br0"), "cookie=0x70deff105,priority=3,tcp,actions=drop")
	s.Ofctl("add-flow", s.Mgmt("br0"), "cookie=0x2,priority=4,tcp,actions=drop")
	want.Flows.Put(plan.Owner{Feature: "egressip/later"},
		plan.Flow{Bridge: "br0", Priority: 9, Match: "in_port={none}"}, "drop")
	comparesAs(t, p, want, "flow missing: br0 priority=100,udp,tp_dst=53 actions=output:1 (of egressip/prod)",
		"flow missing: br0 table=0,priority=9,in_port={none} (of egressip/later)",
		"flow unwanted: br0 priority=3,tcp actions=drop")
}

func comparesAs(t *testing.T, p *Plane, state *plan.State, want ...string) {
	t.Helper()
	list, err := p.Compare(t.Context(), state)
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, d := range list {
		have = append(have, d.String())
	}
	if slices.Sort(have); !slices.Equal(have, want) {
		t.Errorf("%q, want %q", have, want)
	}
}
