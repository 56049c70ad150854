package node

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	apiv1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// nodeServer is an API server with one Node, n1, which holds nothing, or what its EgressNode's statuses say one after
// the other, as often as they are asked for. It refuses the first patches.
type nodeServer struct {
	statuses        []string
	cordon          *string // the annotation
	refuse, patches int
	rest            string // what the Node has beside its metadata, with a comma before it
}

func (s *nodeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(r.URL.Path, "/egressnodes/n1") && len(s.statuses) > 0 {
		fmt.Fprintf(w, `{"kind":"EgressNode","apiVersion":"egret.k8s.ovn.org/v1","metadata":{"name":"n1"},`+
			`"status":{"bootID":"b2"%s}}`, s.statuses[0])
		s.statuses = s.statuses[1:]
		return
	}
	if !strings.HasSuffix(r.URL.Path, "/nodes/n1") {
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		return
	}
	if r.Method == http.MethodPatch {
		if s.patches++; s.patches <= s.refuse {
			w.WriteHeader(http.StatusConflict)
			io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","message":"changed meanwhile","code":409}`)
			return
		}
		var patch struct {
			Metadata struct {
				ResourceVersion string
				Annotations     map[string]*string
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&patch); err == nil && patch.Metadata.ResourceVersion == "7" {
			s.cordon = patch.Metadata.Annotations[apiv1.AnnotationEgressCordon]
		}
	}
	annotations, _ := json.Marshal(map[string]*string{apiv1.AnnotationEgressCordon: s.cordon})
	if s.cordon == nil {
		annotations = []byte("{}")
	}
	fmt.Fprintf(w, `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1","resourceVersion":"7","annotations":%s}%s}`,
		annotations, s.rest)
}

func (s *nodeServer) release(t *testing.T) error {
	t.Helper()
	return s.releaseBy(t, Release)
}

func (s *nodeServer) releaseBy(t *testing.T,
	release func(ctx context.Context, c *kube.Clients, node, bootID string) error) error {
	t.Helper()
	server := httptest.NewServer(s)
	defer server.Close()
	clients, err := kube.NewClients(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	return release(ctx, clients, "n1", "b2")
}

// TestReleaseIfLeaving: the end of an agent's pod moves something where the whole node goes, and only there.
func TestReleaseIfLeaving(t *testing.T) {
	former := apiv1.EgressCordonShutdown + "b1"
	for _, c := range []struct {
		name, rest string
		before     *string
		after      string
	}{
		{"replaced", "", nil, ""},
		{"replaced, after a former boot", "", &former, former},
		{"drained", `,"spec":{"unschedulable":true}`, nil, "shutdown/b2.drain"},
		{"drained, after a former boot", `,"spec":{"unschedulable":true}`, &former, "shutdown/b2.drain"},
		{"shut down", `,"status":{"conditions":[{"type":"Ready","status":"False","message":"node is shutting down"}]}`,
			nil, "shutdown/b2"},
		{"drained and shut down", `,"spec":{"unschedulable":true},"status":{"conditions":[{"type":"Ready","status":"False",` +
			`"message":"node is shutting down"}]}`, nil, "shutdown/b2"},
		{"not ready", `,"status":{"conditions":[{"type":"Ready","status":"False","message":"PLEG is not healthy"}]}`,
			nil, ""},
	} {
		s := &nodeServer{cordon: c.before, rest: c.rest}
		if err := s.releaseBy(t, ReleaseIfLeaving); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		have := ""
		if s.cordon != nil {
			have = *s.cordon
		}
		if have != c.after {
			t.Errorf("%s: the annotation is %q, want %q", c.name, have, c.after)
		}
	}
}

// TestCordonIsOver: an agent removes what a former boot ended with, and what a drain did, when the node is schedulable
// again; never what people have set, nor its own boot's.
func TestCordonIsOver(t *testing.T) {
	for _, c := range []struct {
		boot          string
		unschedulable bool
		over          bool
	}{
		{"", false, false}, {"", true, false},
		{"b1", false, true}, {"b1", true, true}, {"b2", false, false}, {"b2", true, false},
		{"b2.drain", true, false}, {"b2.drain", false, true}, {"b1.drain", true, true}, {"b1.drain", false, true},
	} {
		n := &world.Node{CordonBoot: c.boot, Unschedulable: c.unschedulable}
		if over := cordonIsOver(n, "b2"); over != c.over {
			t.Errorf("%q, unschedulable %t: over %t, want %t", c.boot, c.unschedulable, over, c.over)
		}
	}
}

// TestReleaseCordons: a node that nobody has cordoned gets the annotation that its next boot removes, and somebody's
// own stays what it was.
func TestReleaseCordons(t *testing.T) {
	maintenance, empty, former := "maintenance", "", apiv1.EgressCordonShutdown+"b1"
	for _, c := range []struct {
		before *string
		after  string
	}{{nil, "shutdown/b2"}, {&former, "shutdown/b2"}, {&maintenance, "maintenance"}, {&empty, ""}} {
		s := &nodeServer{cordon: c.before}
		if err := s.release(t); err != nil {
			t.Error(err)
		}
		if s.cordon == nil || *s.cordon != c.after {
			t.Errorf("the annotation is %v, want %q", s.cordon, c.after)
		}
	}
}

// TestReleaseWaits: a node is released when it holds no address any more, whatever object's, and an agent of before
// says so in a list of its own. Who waits in vain is told which are left.
func TestReleaseWaits(t *testing.T) {
	const ofService = `,"heldAddresses":[{"kind":"EgressService","namespace":"a",` +
		`"name":"web","network":"default","ip":"172.18.0.9"}]`
	const ofBefore = `,"holding":[{"egressIP":"e","ip":"172.18.0.33"}],"holdingCount":1`
	s := &nodeServer{statuses: []string{ofService + ofBefore, ofService, ofBefore, ""}}
	if err := s.release(t); err != nil || len(s.statuses) > 0 {
		t.Errorf("error %v, with %d statuses to come: does not wait", err, len(s.statuses))
	}
	for status, ip := range map[string]string{ofService: "172.18.0.9", ofBefore: "172.18.0.33"} {
		s := &nodeServer{statuses: slices.Repeat([]string{status}, 1000)}
		if err := s.release(t); err == nil || !strings.Contains(err.Error(), "still holds "+ip+":") {
			t.Errorf("want an error that names %s, have %v", ip, err)
		}
	}
}

// TestReleaseTriesAgain: what the API server refuses once is tried again, until the time is over.
func TestReleaseTriesAgain(t *testing.T) {
	s := &nodeServer{refuse: 2}
	if err := s.release(t); err != nil || s.cordon == nil {
		t.Errorf("after two refusals: %v, %v", s.cordon, err)
	}
	s = &nodeServer{refuse: 1000}
	if err := s.release(t); err == nil || !strings.Contains(err.Error(), "could not be cordoned") ||
		!strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("after refusals only: %v", err)
	}
}
