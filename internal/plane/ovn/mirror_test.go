package ovn

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/egret-net/egret/internal/plan"
)

// mirrored is a mirror of one router port of ours with bindings, beside many other rows of ours.
func mirrored(t testing.TB, bindings, rows int) *mirror {
	t.Helper()
	var db ovsdb.DatabaseSchema
	must(t, json.Unmarshal([]byte(fuzzedSchema), &db))
	u := tableUpdates{"Logical_Router": {}, tableMACBinding: {},
		tableRouterPort: {"p": named("p", "p"), "q": named("q", "q")}}
	for i := range rows {
		u["Logical_Router"][fmt.Sprint("r", i)] = named(fmt.Sprint("r", i), fmt.Sprint(i))
	}
	for i := range bindings {
		u[tableMACBinding][fmt.Sprint("b", i)] = fmt.Appendf(nil, `{"initial":{"logical_port":"p","ip":"10.0.%d.%d"}}`,
			i/256, i%256)
	}
	m := newMirror(newSchema(db))
	must(t, m.applyUpdate(u))
	return m
}

// named is a row of ours.
func named(name, id string) json.RawMessage {
	return fmt.Appendf(nil, `{"initial":{"name":%q,"external_ids":["map",[["k8s.ovn.org/owner-controller","egret"],`+
		`["k8s.ovn.org/id",%q]]]}}`, name, id)
}

// TestBindingsFollowTheirPort: a Static_MAC_Binding is ours while a router port of ours has the name that it says.
func TestBindingsFollowTheirPort(t *testing.T) {
	m := mirrored(t, 2, 0)
	ours := func(what string, want int) {
		t.Helper()
		have := 0
		for id := range m.ours {
			if id.Table == tableMACBinding {
				have++
			}
		}
		if have != want {
			t.Errorf("%s: %d bindings are ours, want %d", what, have, want)
		}
	}
	change := func(table, uuid, text string) {
		must(t, m.applyUpdate(tableUpdates{table: {uuid: json.RawMessage(text)}}))
	}
	ours("both are read", 2)
	change(tableRouterPort, "p", `{"modify":{"name":"other"}}`)
	ours("their port has another name", 0)
	change(tableRouterPort, "q", `{"modify":{"name":"p"}}`)
	ours("another port has theirs", 2)
	change(tableMACBinding, "b1", `{"modify":{"logical_port":"none"}}`)
	ours("one names a port that is none", 1)
	change(tableRouterPort, "q", `{"modify":{"external_ids":["map",[["k8s.ovn.org/id","q"]]]}}`)
	ours("the port is no longer ours", 0)
	change(tableRouterPort, "p", `{"delete":null}`)
	change(tableRouterPort, "q", `{"delete":null}`)
	change(tableRouterPort, "p", string(named("p", "p")))
	ours("the port is made again", 1)
	change(tableMACBinding, "b0", `{"delete":null}`)
	change(tableRouterPort, "p", `{"delete":null}`)
	ours("all is gone", 0)
	if len(m.routerPorts) > 0 || len(m.bindings) != 1 {
		t.Errorf("the indexes keep %v and %v", m.routerPorts, m.bindings)
	}
	if _, is := m.rows["b1"]; !is || m.rows["b1"].key != (plan.RowID{}) {
		t.Error("the binding of no port is not kept as nobody's")
	}
}

// BenchmarkBindings is the reading of a node's Northbound in a cluster of 500 hosting nodes of both families.
func BenchmarkBindings(b *testing.B) {
	for b.Loop() {
		mirrored(b, 500*16, 20_000)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
