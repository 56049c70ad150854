package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	apiv1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/node/cniserver"
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

// listingAPI is an API whose server has EgressIP b of version 8, at version 20, with the source that follows it.
func listingAPI(t *testing.T) (*API, *kube.Source) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1",
			"metadata":{"resourceVersion":"20"},"items":[{"metadata":{"name":"b","resourceVersion":"8"}}]}`)
	}))
	t.Cleanup(server.Close)
	clients, err := kube.NewClients(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	source := kube.NewSource(clients, slog.New(slog.DiscardHandler), kube.EgressIPs())
	return &API{Clients: clients, Observe: source.Observe, ReadNow: source.ReadNow,
		BeginRead: source.BeginRead}, source
}

func egressIPAt(name, version string) any {
	return &apiv1.EgressIP{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
}

// TestListTakesInWhatIsGone: an object that a list of metadata lacks goes, though the watch has not brought its end.
func TestListTakesInWhatIsGone(t *testing.T) {
	api, source := listingAPI(t)
	w := world.New("", &world.Config{})
	err := source.Store(kube.EgressIPs()).Replace([]any{egressIPAt("a", "7"), egressIPAt("b", "8")}, "9")
	if err := errors.Join(err, api.ReadNow(t.Context(), kube.EgressIPs(), "")); err != nil {
		t.Fatal(err)
	}
	for len(source.Changes()) > 0 {
		(<-source.Changes())(w)
	}
	if have := w.EgressIPs(); !slices.Equal(have, []string{"b"}) {
		t.Errorf("there are EgressIPs %q", have)
	}
}

// TestListOfAnotherHistory: no pod starts by a list that has an object at a version that was past.
func TestListOfAnotherHistory(t *testing.T) {
	api, source := listingAPI(t)
	if err := source.Store(kube.EgressIPs()).Replace([]any{egressIPAt("b", "15")}, "16"); err != nil {
		t.Fatal(err)
	}
	if err := api.ReadNow(t.Context(), kube.EgressIPs(), ""); err == nil || !strings.Contains(err.Error(), "restored") {
		t.Errorf("the list says %v", err)
	}
}

// TestPodAnnotations: a pod that has its namespace's own network gets a second annotation in the same write, with its
// interfaces, and loses both together. Multus alone writes the second one of other pods.
func TestPodAnnotations(t *testing.T) {
	p := cniserver.PodPort{IfName: "eth0", MAC: "0a:58:0a:f4:01:05", IPs: []netip.Addr{compiletest.V4(10, 244, 1, 5)}}
	networks := cniserver.PodNetworks{"default": {MAC: p.MAC}}
	const entry = `{"default":{"ip_addresses":null,"mac_address":"0a:58:0a:f4:01:05"}}`
	in := p
	in.Primary = &cniserver.PrimaryPort{MAC: "0a:58:0a:80:01:05",
		IPs: []netip.Addr{compiletest.V4(10, 128, 1, 5), netip.MustParseAddr("fd00:128::5")}}
	const status = `[{"name":"ovn-kubernetes","interface":"eth0","ips":["10.244.1.5"],` +
		`"mac":"0a:58:0a:f4:01:05","dns":{}},` +
		`{"name":"ovn-kubernetes","interface":"ovn-udn1","ips":["10.128.1.5","fd00:128::5"],` +
		`"mac":"0a:58:0a:80:01:05","default":true,"dns":{}}]`
	const networksKey, statusKey = "k8s.ovn.org/pod-networks", "k8s.v1.cni.cncf.io/network-status"
	for name, x := range map[string]struct {
		port cniserver.PodPort
		nets cniserver.PodNetworks
		want map[string]any
	}{
		"default network":         {p, networks, map[string]any{networksKey: entry}},
		"default network removed": {p, nil, map[string]any{networksKey: nil}},
		"own network":             {in, networks, map[string]any{networksKey: entry, statusKey: status}},
		"own network removed":     {in, nil, map[string]any{networksKey: nil, statusKey: nil}},
	} {
		have, err := podAnnotations(x.port, x.nets)
		if diff := cmp.Diff(x.want, have); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +have):\n%s", name, err, diff)
		}
	}
}
