package kube

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/egret-net/egret/internal/world"
)

// TestStatusPatchIsWhole: what writeEgressIP sends names every field of the status that EgressIPStatus fills.
func TestStatusPatchIsWhole(t *testing.T) {
	var sent struct{ Status map[string]json.RawMessage }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		must(t, json.Unmarshal(b, &sent))
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"e","resourceVersion":"6"}}`)
	}))
	defer server.Close()
	clients, err := NewClients(&rest.Config{Host: server.URL, QPS: -1})
	must(t, err)
	ip := netip.MustParseAddr("172.18.0.33")
	e := &world.EgressIP{Name: "e", Version: "5", Placement: world.Placement{
		Items:   []world.Assignment{{Node: "n2", IP: ip}},
		Leaving: []world.Leaving{{Node: "n1", IP: ip, Since: time.Unix(1000, 0)}}, Granted: []netip.Addr{ip},
		InForce: [2]bool{true, false}},
		Conditions: []world.Condition{{Type: "Ready", Status: "True", Reason: "Held"}}}
	if _, err := clients.Patch(t.Context(), writeEgressIP(e, e).Patch(time.Unix(1000, 0))); err != nil {
		t.Log(err)
	}
	full, err := json.Marshal(EgressIPStatus(e))
	must(t, err)
	var want map[string]json.RawMessage
	must(t, json.Unmarshal(full, &want))
	for field := range want {
		if sent.Status[field] == nil {
			t.Errorf("the patch does not name status.%s", field)
		}
	}
}
