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

// TestMarkIsWrittenAfterTheStatus: one write gives the mark, if the object is at the version that was seen. What else
// differs of the object comes before, but for mere messages.
func TestMarkIsWrittenAfterTheStatus(t *testing.T) {
	placed := world.Placement{Items: []world.Assignment{{Node: "n2", IP: netip.MustParseAddr("172.18.0.33")}}}
	ready := func(status, message string) []world.Condition {
		return []world.Condition{{Type: "Ready", Status: status, Message: message}}
	}
	shown := &world.EgressIP{Name: "e", Version: "5", Placement: placed, Conditions: ready("True", "a")}
	for name, x := range map[string]struct {
		should world.EgressIP
		status bool
	}{
		"the mark alone": {world.EgressIP{Placement: placed, Conditions: ready("True", "a")}, false},
		"a message":      {world.EgressIP{Placement: placed, Conditions: ready("True", "b")}, false},
		"a condition":    {world.EgressIP{Placement: placed, Conditions: ready("False", "a")}, true},
		"a node":         {world.EgressIP{Conditions: ready("True", "a")}, true},
	} {
		x.should.Name, x.should.Version, x.should.Mark = "e", "5", 50000
		w := writeEgressIP(shown, &x.should)
		p := w.Patch(time.Unix(1000, 0))
		if have := p.Subresource == "status"; have != x.status {
			t.Errorf("%s: writes the status: %t", name, have)
		}
		const want = `{"metadata":{"resourceVersion":"5","annotations":{"k8s.ovn.org/egressip-mark":"50000"}}}`
		if !x.status && (string(p.Body) != want || w.Urgent || w.Rewords || w.Version != "5") {
			t.Errorf("%s: %s, %+v", name, p.Body, w)
		}
	}
}
