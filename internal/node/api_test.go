package node

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// TestWholePatch: the patch names every field of the status, so that nothing of a former report stays.
func TestWholePatch(t *testing.T) {
	h := &world.Holding{Node: "n1", BootID: "boot", Holds: map[string][]netip.Addr{}}
	text, err := wholePatch(kube.EgressNode(h, "uid", "devel", nil))
	if err != nil {
		t.Fatal(err)
	}
	var patch struct {
		Status map[string]any `json:"status"`
	}
	if err := json.Unmarshal(text, &patch); err != nil {
		t.Fatal(err)
	}
	fields := reflect.TypeFor[egretv1.EgressNodeStatus]()
	if len(patch.Status) != fields.NumField() {
		t.Errorf("the patch has %d fields of %d: %s", len(patch.Status), fields.NumField(), text)
	}
	if v, there := patch.Status["holding"]; !there || v != nil {
		t.Errorf("holding is %v, want null: %s", v, text)
	}
}

// TestAnnotateNodeKeepsOtherNetworks: what the Node says of other networks at the time of the write is kept, also
// where it was written in between.
func TestAnnotateNodeKeepsOtherNetworks(t *testing.T) {
	const key = "k8s.ovn.org/l3-gateway-config"
	reads, stored := 0, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodGet:
			reads++
		case !strings.Contains(string(body), `"resourceVersion":"2"`):
			w.WriteHeader(http.StatusConflict)
			io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`)
			return
		default:
			stored = string(body)
		}
		node := map[string]any{"kind": "Node", "apiVersion": "v1", "metadata": map[string]any{
			"name": "n1", "resourceVersion": strconv.Itoa(reads),
			"annotations": map[string]string{key: fmt.Sprintf(`{"blue":%d}`, reads)},
		}}
		if err := json.NewEncoder(w).Encode(node); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	clients, err := kube.NewClients(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	api := API{Node: "n1", Clients: clients, Observe: func(any) error { return nil }}
	if _, err := api.AnnotateNode(t.Context(), map[string]string{key: `{"default":{}}`}); err != nil {
		t.Fatal(err)
	}
	want := `{"metadata":{"annotations":{"` + key + `":"{\"blue\":2,\"default\":{}}"},"resourceVersion":"2"}}`
	if stored != want {
		t.Errorf("stored %s, want %s", stored, want)
	}
}

// TestAnnotateStaticPod: the mirror of a static pod has a UID of its own, and is annotated all the same; a pod that was
// made anew is not.
func TestAnnotateStaticPod(t *testing.T) {
	for mirrored, want := range map[string]string{"own": `{"metadata":{"annotations":{"a":"b"},"uid":"mirror"}}`,
		"another": ""} {
		var stored string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("Content-Type", "application/json")
			switch {
			case r.Method == http.MethodPatch && !strings.Contains(string(body), `"mirror"`):
				w.WriteHeader(http.StatusUnprocessableEntity)
				io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
				return
			case r.Method == http.MethodPatch:
				stored = string(body)
			}
			io.WriteString(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","uid":"mirror","annotations":{"kubernetes.io/config.mirror":"`+mirrored+`"}}}`)
		}))
		defer server.Close()
		clients, err := kube.NewClients(&rest.Config{Host: server.URL, QPS: -1})
		if err != nil {
			t.Fatal(err)
		}
		api := API{Node: "n1", Clients: clients, Observe: func(any) error { return nil }}
		err = api.AnnotatePod(t.Context(), "default", "p", "own", map[string]any{"a": "b"})
		if stored != want || (err == nil) != (want != "") {
			t.Errorf("mirror of %s: stored %q, want %q; error %v", mirrored, stored, want, err)
		}
	}
}
