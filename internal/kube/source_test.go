package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/world"
)

func newTable(w *world.World) *table {
	return &table{
		convert: func(obj any) Change {
			n := Node(obj.(*corev1.Node))
			return func(w *world.World) { w.SetNode(n) }
		},
		remove: removeChange((*world.World).DelNode),
		send:   func(c Change) { c(w) }, known: map[string]string{}, gone: map[string]tombstone{},
	}
}

func version(name, version string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
}

// must fails the test on an error of a store, which never has one with real objects.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func nodeVersions(w *world.World) string {
	s := ""
	for _, n := range w.Nodes() {
		s += n + "@" + w.Node(n).Version + " "
	}
	return s
}

// TestTableBeginsWithTheOldest: of two Nodes of the first list that claim one id the older keeps it; of later ones the
// one that was there.
func TestTableBeginsWithTheOldest(t *testing.T) {
	w := world.New("", &world.Config{JoinSubnets: world.DefaultJoinSubnets(),
		TransitSubnets: world.DefaultTransitSubnets()})
	of := func(name, v string, born int64) *corev1.Node {
		n := version(name, v)
		n.CreationTimestamp, n.Annotations = metav1.Unix(born, 0), map[string]string{v1.AnnotationNodeID: "7"}
		return n
	}
	table := newTable(w)
	must(t, table.Replace([]any{of("a", "1", 300), of("z", "2", 100)}, "2"))
	if w.Node("z").ID != 7 || w.Node("a").ID != 0 {
		t.Errorf("a has %d, z %d", w.Node("a").ID, w.Node("z").ID)
	}
	must(t, table.Replace([]any{of("older", "3", 50), of("a", "1", 300), of("z", "2", 100)}, "3"))
	if w.Node("z").ID != 7 || w.Node("older").ID != 0 {
		t.Errorf("older has %d, z %d", w.Node("older").ID, w.Node("z").ID)
	}
}

func TestTableFollows(t *testing.T) {
	w := world.New("", &world.Config{})
	table := newTable(w)
	if table.inWorld.Load() {
		t.Error("a list is in the world before there was one")
	}
	must(t, table.Replace([]any{version("a", "9"), version("b", "10")}, "10"))
	must(t, table.Update(version("a", "11")))
	must(t, table.Add(version("c", "12")))
	must(t, table.Delete(version("b", "13")))
	if have := nodeVersions(w); have != "a@11 c@12 " || !table.inWorld.Load() {
		t.Errorf("have %s, the first list is in the world: %t", have, table.inWorld.Load())
	}
	must(t, table.Replace([]any{version("d", "20")}, "20")) // a and c went while nobody watched
	if have := nodeVersions(w); have != "d@20 " {
		t.Errorf("have %s", have)
	}
}

// What the API server answers is in the world at once, also if the watch has yet to bring it; what is older and comes
// later is not.
func TestTableObserves(t *testing.T) {
	w := world.New("", &world.Config{})
	table := newTable(w)
	must(t, table.Replace([]any{version("a", "9")}, "9"))
	must(t, table.observeObject(version("a", "12")))
	must(t, table.Update(version("a", "11")))
	if have := nodeVersions(w); have != "a@12 " {
		t.Errorf("have %s", have)
	}
	must(t, table.Delete(version("a", "13")))
	must(t, table.observeObject(version("a", "12")))
	if have := nodeVersions(w); have != "" {
		t.Errorf("a deleted object came back: %s", have)
	}
	must(t, table.observeObject(version("b", "14")))
	must(t, table.Delete(version("b", "15")))
	must(t, table.observeObject(version("b", "14")))
	must(t, table.observeObject(version("c", "16")))
	if have := nodeVersions(w); have != "c@16 " {
		t.Errorf("what the watch has yet to bring: have %s", have)
	}
	must(t, table.Replace(nil, "17"))
	must(t, table.observeObject(version("c", "16")))
	if have := nodeVersions(w); have != "" {
		t.Errorf("an object that a list no longer has came back: %s", have)
	}
}

// TestTableKnowsWhatWasOverwritten: an object was written or deleted after a version if the watch has shown a later
// one, or has got further without it.
func TestTableKnowsWhatWasOverwritten(t *testing.T) {
	for name, c := range map[string]struct {
		watch func(*table) error
		want  bool
	}{
		"not listed yet": {func(*table) error { return nil }, false},
		"late":           {func(t *table) error { return t.Update(namespace("a", "9", "")) }, false},
		"our own":        {func(t *table) error { return t.observeObject(namespace("a", "10", "")) }, false},
		"another's":      {func(t *table) error { return t.Update(namespace("a", "11", "")) }, true},
		"deleted before": {func(t *table) error { return t.Delete(namespace("a", "9", "")) }, false},
		"deleted":        {func(t *table) error { return t.Delete(namespace("a", "11", "")) }, true},
		"gone":           {func(t *table) error { return t.Replace(nil, "11") }, true},
	} {
		_, table, _ := namespaces()
		must(t, c.watch(table))
		if have := table.isOverwritten("a", "10"); have != c.want {
			t.Errorf("%s: %v, want %v", name, have, c.want)
		}
	}
}

func TestTableTransformsOnce(t *testing.T) {
	w := world.New("", &world.Config{})
	table := newTable(w)
	row, err := table.Transformer()(version("a", "9"))
	must(t, err)
	must(t, table.Replace([]any{row}, "9"))
	if have := nodeVersions(w); have != "a@9 " {
		t.Errorf("have %s", have)
	}
}

// fakeServer lists and watches EgressIPs; when it is off, it refuses everything and ends its watches.
type fakeServer struct {
	mu      sync.Mutex
	off     bool
	objects []string
	stop    chan struct{}
}

func (s *fakeServer) set(off bool, objects ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.off, s.objects = off, objects
	close(s.stop)
	s.stop = make(chan struct{})
}

func (s *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	off, objects, stop := s.off, s.objects, s.stop
	s.mu.Unlock()
	q := r.URL.Query()
	switch {
	case off || q.Get("sendInitialEvents") != "":
		http.Error(w, "off", http.StatusServiceUnavailable)
	case q.Get("watch") != "":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		select {
		case <-stop:
			expired := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure",
				Reason: metav1.StatusReasonExpired, Code: 410}
			fmt.Fprintf(w, `{"type":"ERROR","object":%s}`, toJSON(expired))
		case <-r.Context().Done():
		}
	default:
		list := v1.EgressIPList{TypeMeta: metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "EgressIPList"},
			ListMeta: metav1.ListMeta{ResourceVersion: "5"}}
		for _, name := range objects {
			list.Items = append(list.Items, v1.EgressIP{ObjectMeta: metav1.ObjectMeta{Name: name,
				ResourceVersion: "5"}})
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(list); err != nil {
			panic(err)
		}
	}
}

// The world keeps what it had while the API server is away, and has what the server has soon after it is back.
func TestSourceOutlivesTheServer(t *testing.T) {
	server := &fakeServer{objects: []string{"a", "b"}, stop: make(chan struct{})}
	h := httptest.NewServer(server)
	defer h.Close()
	clients, err := NewClients(&rest.Config{Host: h.URL, QPS: -1})
	must(t, err)
	source := NewSource(clients, slog.New(slog.DiscardHandler), EgressIPs())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { source.Run(ctx); close(done) }()
	w := world.New("", &world.Config{})
	if missing := source.ListsMissing(); source.Synced() || fmt.Sprint(missing) != "[egressips]" {
		t.Errorf("before anything was applied, %q miss their lists", missing)
	}
	wait := func(want string, atMost time.Duration) {
		t.Helper()
		deadline := time.After(atMost)
		for fmt.Sprint(w.EgressIPs()) != want {
			select {
			case c := <-source.Changes():
				before := len(w.EgressIPs())
				if c(w); before > 0 && len(w.EgressIPs()) == 0 {
					t.Fatal("an empty world")
				}
			case <-deadline:
				t.Fatalf("have %v, want %s", w.EgressIPs(), want)
			}
		}
	}
	wait("[a b]", 5*time.Second)
	if !source.Synced() {
		t.Error("not synced")
	}
	server.set(true)
	select {
	case c := <-source.Changes():
		c(w)
		t.Errorf("a change while the server is away: %v", w.EgressIPs())
	case <-time.After(1500 * time.Millisecond):
	}
	server.set(false, "b", "c")
	wait("[b c]", 2*time.Second)
	cancel()
	<-done
}
