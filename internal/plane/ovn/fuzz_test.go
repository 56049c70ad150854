package ovn

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/egret-net/egret/internal/plan"
)

// fuzzedSchema has a table of each kind that the mirror treats in its own way.
const fuzzedSchema = `{"name":"DB","version":"1.0.0","tables":{
"NB_Global":{"columns":{"hv_cfg":{"type":"integer"}},"isRoot":true},
"Address_Set":{"columns":{"name":{"type":"string"},"addresses":{"type":{"key":"string","min":0,"max":"unlimited"}},
 "external_ids":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}},"isRoot":true},
"Logical_Router":{"columns":{"name":{"type":"string"},"enabled":{"type":{"key":"boolean","min":0,"max":1}},
 "ports":{"type":{"key":{"type":"uuid","refTable":"Logical_Router_Port","refType":"strong"},"min":0,"max":"unlimited"}},
 "external_ids":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}},"isRoot":true},
"Logical_Router_Port":{"columns":{"name":{"type":"string"},"external_ids":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}}},
"Static_MAC_Binding":{"columns":{"logical_port":{"type":"string"},"ip":{"type":"string"}},"isRoot":true},
"Load_Balancer_Group":{"columns":{"name":{"type":"string"}},"isRoot":true},
"Chassis":{"columns":{"name":{"type":"string"},"encaps":{"type":{"key":{"type":"uuid","refTable":"Encap","refType":"strong"},"min":0,"max":"unlimited"}},
 "external_ids":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}},"isRoot":true},
"Encap":{"columns":{"type":{"type":"string"},"ip":{"type":"string"}}}}}`

// FuzzUpdates gives the mirror one notification a line. It is refused, and the session would read the database anew, or
// the mirror is as if the database had been read just now.
func FuzzUpdates(f *testing.F) {
	const ours = `["map",[["k8s.ovn.org/owner-controller","egret"],["k8s.ovn.org/id","a"]]]`
	for _, lines := range []string{
		`{"Address_Set":{"1":{"initial":{"name":"a","addresses":["set",["10.0.0.1","10.0.0.2"]],"external_ids":` + ours + `}}}}
{"Address_Set":{"1":{"modify":{"addresses":["set",["10.0.0.2","10.0.0.3"]]}},"2":{"insert":{"addresses":"10.0.0.9","external_ids":` + ours + `}}}}
{"Address_Set":{"1":{"delete":null}}}`,
		`{"Logical_Router":{"1":{"insert":{"ports":["set",[["uuid","2"]]],"external_ids":` + ours + `}}},"Logical_Router_Port":{"2":{"insert":{"name":"p","external_ids":` + ours + `}}},
"Static_MAC_Binding":{"3":{"insert":{"logical_port":"p","ip":"10.0.0.1"}}}}
{"Logical_Router":{"1":{"modify":{"ports":["set",[["uuid","2"]]],"enabled":true}}},"Logical_Router_Port":{"2":{"delete":null}}}`,
		`{"Chassis":{"1":{"insert":{"encaps":["uuid","2"],"external_ids":` + ours + `}}},"Encap":{"2":{"insert":{"type":"geneve","ip":"10.0.0.1"}}}}
{"Chassis":{"1":{"modify":{"external_ids":["map",[["k8s.ovn.org/id","a"]]]}}}}`,
		`{"Load_Balancer_Group":{"1":{"insert":{"name":"egret-a"}}},"NB_Global":{"2":{"initial":{"hv_cfg":5}}}}
{"Load_Balancer_Group":{"1":{"modify":{"name":"theirs"}}}}
{"Load_Balancer_Group":{"1":{"insert":{"name":"egret-b"}}}}
{"Encap":{"1":{"modify":{"ip":"10.0.0.1"}}}}`,
		`{"Address_Set":{"1":{"insert":{"addresses":["map",[["a","b"]]],"external_ids":["set",["x"]]}}}}
{"Address_Set":{"1":{"modify":{"addresses":["set",["b","b"]]}}}}`,
	} {
		f.Add(lines)
	}
	var db ovsdb.DatabaseSchema
	if err := json.Unmarshal([]byte(fuzzedSchema), &db); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, notifications string) {
		m := newMirror(newSchema(db))
		read := json.NewDecoder(strings.NewReader(notifications))
		for {
			var u tableUpdates
			if read.Decode(&u) != nil || m.applyUpdate(u) != nil {
				return
			}
			whole(t, m)
		}
	})
}

// whole checks the invariants of a mirror by its rows.
func whole(t *testing.T, m *mirror) {
	t.Helper()
	edges, elems, kept := map[string]map[edge]bool{}, map[plan.SetElem]plan.None{}, 0
	for uuid, r := range m.rows {
		addEdges(edges, r)
		if key := m.keyOf(r); key != r.key {
			t.Errorf("row %s of %s has key %v, want %v", uuid, r.table.name, r.key, key)
		}
		if r.key == (plan.RowID{}) {
			continue
		}
		kept++
		if m.ours[r.key] != r && m.extra[uuid] != r {
			t.Errorf("row %s of %s with key %v is lost", uuid, r.table.name, r.key)
		}
		if m.ours[r.key] == r && r.table.name == tableAddressSet {
			for _, a := range r.valueOf(colAddresses).set {
				elems[plan.SetElem{Set: r.key.Name, Addr: a}] = plan.None{}
			}
		}
	}
	if n := len(m.ours) + len(m.extra); n != kept {
		t.Errorf("%d rows are ours, and the mirror has %d", kept, n)
	}
	if diff := cmp.Diff(elems, m.elems); diff != "" {
		t.Errorf("elements (-by rows +kept)\n%s", diff)
	}
	if have := asSets(m.edges); !maps.EqualFunc(edges, have, maps.Equal[map[edge]bool, map[edge]bool]) {
		t.Errorf("references by rows %v, kept %v", edges, have)
	}
}

func addEdges(edges map[string]map[edge]bool, r *row) {
	for name, v := range r.cols {
		c := r.table.cols[name]
		for _, u := range v.set {
			if c.ref == "" {
				continue
			}
			if edges[u] == nil {
				edges[u] = map[edge]bool{}
			}
			edges[u][edge{r, c}] = true
		}
	}
}

func asSets(lists map[string][]edge) map[string]map[edge]bool {
	out := map[string]map[edge]bool{}
	for u, list := range lists {
		out[u] = map[edge]bool{}
		for _, e := range list {
			out[u][e] = true
		}
	}
	return out
}
