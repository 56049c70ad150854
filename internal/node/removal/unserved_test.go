package removal

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
)

const listed = `{"items":[
{"metadata":{"name":"here","namespace":"shop","resourceVersion":"7","generation":3},"status":{"items":[{"node":"n2"},{"node":"n1"}],
 "conditions":[{"type":"Assigned","status":"True","reason":"Assigned"},{"type":"Ready","status":"True","reason":"Held"}]}},
{"metadata":{"name":"all","resourceVersion":"8"},"status":{"items":[{"node":"ALL"}],
 "conditions":[{"type":"Ready","status":"True","reason":"Held"}]}},
{"metadata":{"name":"elsewhere"},"status":{"items":[{"node":"n2"}],
 "conditions":[{"type":"Ready","status":"True","reason":"Held"}]}},
{"metadata":{"name":"not-ready"},"status":{"items":[{"node":"n1"}],
 "conditions":[{"type":"Ready","status":"False","reason":"WaitingForNode"}]}},
{"metadata":{"name":"refused"},"status":{"items":[{"node":"n1"}],
 "conditions":[{"type":"Ready","status":"True","reason":"Held"}]}},
{"metadata":{"name":"new"}}]}`

// TestSayUnserved: Ready ends where a node is named from which Egret goes, and nowhere else. The rest of the status
// stays. A kind that does not exist has no objects. A write that a policy refuses stops no removal.
func TestSayUnserved(t *testing.T) {
	patched := map[string]assigned{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/refused/status"):
			w.WriteHeader(http.StatusUnprocessableEntity)
			io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
		case r.Method == http.MethodPatch:
			var o assigned
			if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
				t.Error(err)
			}
			patched[strings.TrimPrefix(r.URL.Path, "/apis/k8s.ovn.org/v1/")] = o
			io.WriteString(w, `{}`)
		case strings.HasSuffix(r.URL.Path, "/egressips"):
			io.WriteString(w, listed)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	clients, err := kube.NewClients(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	for _, plural := range []string{"egressips", "egressservices"} {
		if err := sayUnserved(t.Context(), clients, plural, "n1"); err != nil {
			t.Error(err)
		}
	}
	here, all := patched["namespaces/shop/egressips/here/status"], patched["egressips/all/status"]
	ready := meta.FindStatusCondition(here.Status.Conditions, v1.ConditionReady)
	if len(patched) != 2 || here.ResourceVersion != "7" || all.ResourceVersion != "8" || ready == nil ||
		ready.Status != "False" || ready.Reason != v1.ReasonRemoved || ready.ObservedGeneration != 3 ||
		!meta.IsStatusConditionTrue(here.Status.Conditions, v1.ConditionAssigned) {
		t.Errorf("written are %+v", patched)
	}
	if len(here.Status.Items) > 0 {
		t.Errorf("what is assigned is replaced by %v", here.Status.Items)
	}
}
