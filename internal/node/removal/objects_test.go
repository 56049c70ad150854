package removal

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
)

// objects are an API server's: one Node, n1, and what can be deleted, by path.
type objects struct {
	Annotations map[string]string `json:"annotations"`
	Labels      map[string]string `json:"labels"`
	others      map[string]bool
	noNode      bool
}

func (o *objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	isNode := r.URL.Path == "/api/v1/nodes/n1" && !o.noNode
	switch {
	case r.Method == http.MethodDelete && o.others[r.URL.Path]:
		delete(o.others, r.URL.Path)
		io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
		return
	case r.Method == http.MethodPatch && isNode:
		var patch struct {
			Metadata struct{ Annotations, Labels map[string]*string }
		}
		if err := json.NewDecoder(r.Body).Decode(&patch); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		for key := range patch.Metadata.Annotations {
			delete(o.Annotations, key)
		}
		for key := range patch.Metadata.Labels {
			delete(o.Labels, key)
		}
	case !isNode:
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		return
	}
	metadata, _ := json.Marshal(o)
	fmt.Fprintf(w, `{"kind":"Node","apiVersion":"v1","metadata":%s}`, strings.Replace(string(metadata), "{",
		`{"name":"n1",`, 1))
}

// TestRemoveObjects: what Egret wrote goes, also if it is asked for twice or the Node is gone. What people wrote stays.
func TestRemoveObjects(t *testing.T) {
	o := &objects{
		Annotations: map[string]string{"example.org/a": "1", v1.AnnotationSecondaryNetworks: "192.0.2.0/24",
			v1.AnnotationEgressCordon: v1.EgressCordonShutdown + "b1", v1.AnnotationNodeID: "7",
			v1.AnnotationNodeSubnets: "{}"},
		Labels: map[string]string{"example.org/l": "", v1.LabelEgressAssignable: "", v1.LabelEgressService + "a-b": ""},
		others: map[string]bool{"/apis/egret.k8s.ovn.org/v1/egressnodes/n1": true,
			"/apis/egret.k8s.ovn.org/v1/egressnodes/n2":                                          true,
			"/apis/coordination.k8s.io/v1/namespaces/" + kube.AgentLeaseNamespace + "/leases/n1": true},
	}
	server := httptest.NewServer(o)
	defer server.Close()
	clients, err := kube.NewClients(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		o.noNode = i == 2
		if err := removeObjects(t.Context(), clients, "n1"); err != nil {
			t.Error(err)
		}
	}
	if len(o.Annotations) != 2 || o.Annotations["example.org/a"] == "" || len(o.Labels) != 2 || len(o.others) != 1 {
		t.Errorf("left are annotations %v, labels %v, objects %v", o.Annotations, o.Labels, o.others)
	}
	o.noNode, o.Annotations[v1.AnnotationEgressCordon] = false, "maintenance"
	if err := removeObjects(t.Context(), clients, "n1"); err != nil || o.Annotations[v1.AnnotationEgressCordon] == "" {
		t.Errorf("a cordon of people is gone: %v", err)
	}
}

// TestNodeAnnotationsAreComplete: the admission policy names each annotation of a Node that Egret writes.
func TestNodeAnnotationsAreComplete(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/admission-node.yaml")
	if err != nil {
		t.Fatal(err)
	}
	nodes, _, _ := strings.Cut(string(text), "kind: ValidatingAdmissionPolicyBinding")
	found := 0
	for _, key := range regexp.MustCompile(`'((egret\.)?k8s\.ovn\.org/[a-z0-9-]+)'`).FindAllStringSubmatch(nodes, -1) {
		if found++; !slices.Contains(nodeAnnotations, key[1]) && key[1] != v1.AnnotationEgressCordon {
			t.Errorf("annotation %s of a Node would be left", key[1])
		}
	}
	if found < len(nodeAnnotations) {
		t.Errorf("the policy names %d annotations, want at least %d", found, len(nodeAnnotations))
	}
}
