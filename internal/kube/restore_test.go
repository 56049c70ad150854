package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/world"
)

// namespaces is a world with the table of its namespaces; told has what the table said of a history that went back.
func namespaces() (w *world.World, table *table, told *[]string) {
	w, told = world.New("n1", &world.Config{}), &[]string{}
	table = newTable(w)
	table.convert = func(obj any) Change {
		n := Namespace(obj.(*corev1.Namespace))
		return func(w *world.World) { w.SetNamespace(n) }
	}
	table.remove = removeChange((*world.World).DelNamespace)
	table.back = func(seen, list string) { *told = append(*told, seen+">"+list) }
	return w, table, told
}

func namespace(name, version, label string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version,
		Labels: map[string]string{"is": label}}}
}

// labelled says how the namespaces a and b are labelled, of those that the world has.
func labelled(w *world.World) string {
	var s []string
	for _, name := range []string{"a", "b"} {
		if n := w.Namespace(name); n != nil {
			s = append(s, name+"="+n.Labels["is"])
		}
	}
	return strings.Join(s, " ")
}

// TestTableAfterARestore: etcd was restored from a backup, and its versions begin again below those that were seen.
func TestTableAfterARestore(t *testing.T) {
	w, table, told := namespaces()
	must(t, table.Replace([]any{namespace("a", "8000", "old")}, "8000"))
	must(t, table.Update(namespace("a", "9000", "newer")))
	must(t, table.Update(namespace("b", "9001", "after the backup")))
	must(t, table.observeObject(namespace("b", "9002", "written by us")))
	must(t, table.Replace([]any{namespace("a", "5000", "restored")}, "5001"))
	if have := labelled(w); have != "a=restored" || !slices.Equal(*told, []string{"9001>5001"}) {
		t.Errorf("after the list: %s, told %q", have, *told)
	}
	must(t, table.Update(namespace("a", "5002", "changed")))
	must(t, table.Update(namespace("b", "5003", "made anew")))
	if have := labelled(w); have != "a=changed b=made anew" {
		t.Errorf("by the watch: %s", have)
	}
	if !table.isOutdated("a", "5004") || table.isOutdated("a", "5002") {
		t.Error("what is outdated is told by versions of before the restore")
	}
	must(t, table.observeObject(namespace("a", "5004", "asked for")))
	if have := labelled(w); have != "a=asked for b=made anew" || len(*told) != 1 {
		t.Errorf("by an answer: %s, told %q", have, *told)
	}
}

// TestTableAfterARestoreThatWasPassed: the cluster has gone on after the restore, beyond the versions that were seen
// before. That an object is older than it was gives it away; so does a reflector that was told so.
func TestTableAfterARestoreThatWasPassed(t *testing.T) {
	for _, forked := range []bool{false, true} {
		w, table, told := namespaces()
		must(t, table.Replace([]any{namespace("a", "90", "old"), namespace("b", "80", "old")}, "90"))
		restored := []any{namespace("a", "70", "restored"), namespace("b", "80", "another")}
		if forked {
			restored = []any{namespace("a", "90", "restored"), namespace("b", "80", "another")}
			table.markForked()
		}
		must(t, table.Replace(restored, "100"))
		if have := labelled(w); have != "a=restored b=another" || !slices.Equal(*told, []string{"90>100"}) {
			t.Errorf("forked %v: %s, told %q", forked, have, *told)
		}
		must(t, table.Replace([]any{namespace("a", "90", "restored")}, "101"))
		if len(*told) != 1 {
			t.Errorf("forked %v: told again: %q", forked, *told)
		}
	}
}

// TestTableKeepsWhatAListIsTooOldFor: no list of the same history takes back what an answer to our own request has
// brought, the first one, which may be of any age, as little as later ones.
func TestTableKeepsWhatAListIsTooOldFor(t *testing.T) {
	w, table, told := namespaces()
	must(t, table.observeObject(namespace("a", "12", "written by us")))
	must(t, table.Replace([]any{namespace("a", "9", "old")}, "9"))
	must(t, table.observeObject(namespace("b", "13", "written by us")))
	must(t, table.Replace([]any{namespace("a", "9", "old")}, "10"))
	if have := labelled(w); have != "a=written by us b=written by us" || len(*told) > 0 {
		t.Errorf("have %s, told %q", have, *told)
	}
}

// longWatch is how long a watch lasts that client-go resumes: one that ends within a second is a failure, after which
// it lists.
const longWatch = 1100 * time.Millisecond

// history is an API server with one EgressIP. Like a real one it refuses a list from the future, and takes a watch from
// there and sends nothing.
type history struct {
	mu      sync.Mutex
	version int
	name    string
	lists   int    // whole ones
	oldest  string // the version of the last list that any later one would do for
	watches int
	stop    chan struct{}
}

// restart ends all watches, as the end of an API server does; then it is at a version.
func (h *history) restart(version int, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version, h.name = version, name
	close(h.stop)
	h.stop = make(chan struct{})
}

func (h *history) counts() (lists, watches int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lists, h.watches
}

func (h *history) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	q := r.URL.Query()
	from, _ := strconv.Atoi(q.Get("resourceVersion"))
	w.Header().Set("Content-Type", "application/json")
	switch {
	case q.Get("sendInitialEvents") != "":
		w.WriteHeader(http.StatusServiceUnavailable)
	case q.Get("watch") != "":
		h.watches++
		stop := h.stop
		w.(http.Flusher).Flush()
		h.mu.Unlock()
		select {
		case <-stop:
		case <-r.Context().Done():
		}
		h.mu.Lock()
	case from > h.version:
		w.WriteHeader(http.StatusGatewayTimeout)
		fmt.Fprint(w, toJSON(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status: "Failure", Reason: metav1.StatusReasonTimeout, Code: 504,
			Details: &metav1.StatusDetails{
				Causes: []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}}}))
	default:
		if from > 0 {
			h.oldest = q.Get("resourceVersion")
		}
		h.list(w, q.Get("limit") == "1" || strings.Contains(q.Get("fieldSelector"), noObject))
	}
}

func (h *history) list(w http.ResponseWriter, one bool) {
	if !one {
		h.lists++
	}
	version := strconv.Itoa(h.version)
	list := v1.EgressIPList{TypeMeta: metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "EgressIPList"},
		ListMeta: metav1.ListMeta{ResourceVersion: version}}
	list.Items = []v1.EgressIP{{ObjectMeta: metav1.ObjectMeta{Name: h.name, ResourceVersion: version}}}
	if err := json.NewEncoder(w).Encode(list); err != nil {
		panic(err)
	}
}

// follow runs a source of EgressIPs; until applies changes until something is true.
func follow(t *testing.T, h *history, log *slog.Logger) (source *Source, w *world.World, until func(what string,
	is func() bool)) {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	clients, err := NewClients(&rest.Config{Host: server.URL, QPS: -1})
	must(t, err)
	source, w = NewSource(clients, log, EgressIPs()), world.New("", &world.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { source.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return source, w, func(what string, is func() bool) {
		t.Helper()
		deadline := time.After(5 * time.Second)
		for !is() {
			select {
			case c := <-source.Changes():
				c(w)
			case <-time.After(10 * time.Millisecond):
			case <-deadline:
				t.Fatalf("not %s: EgressIPs %v", what, w.EgressIPs())
			}
		}
	}
}

// TestSourceFollowsARestore: the API server of a restored etcd takes the watch from its future, and refuses nothing.
func TestSourceFollowsARestore(t *testing.T) {
	var said strings.Builder
	h := &history{version: 9000, name: "before", stop: make(chan struct{})}
	source, w, until := follow(t, h, slog.New(slog.NewTextHandler(&said, nil)))
	watching := func(n int) func() bool { return func() bool { _, watches := h.counts(); return watches >= n } }
	until("watching", watching(1))
	time.Sleep(longWatch)
	h.restart(5000, "restored")
	until("restored", func() bool { return slices.Equal(w.EgressIPs(), []string{"restored"}) })
	until("watching what it is now", watching(2))
	if source.WentBack() != 1 || strings.Count(said.String(), "etcd was restored") != 1 ||
		!strings.Contains(said.String(), "seen=9000 now=5000") {
		t.Errorf("went back %d times, said %s", source.WentBack(), said.String())
	}
}

// TestSourceResumes: what has not gone back is not listed anew after each end of a watch.
func TestSourceResumes(t *testing.T) {
	h := &history{version: 9000, name: "e", stop: make(chan struct{})}
	source, _, until := follow(t, h, slog.New(slog.DiscardHandler))
	for n := 1; n <= 2; n++ {
		until("watching", func() bool { _, watches := h.counts(); return watches >= n })
		time.Sleep(longWatch)
		h.restart(9000, "e")
	}
	until("watching", func() bool { _, watches := h.counts(); return watches >= 3 })
	if lists, _ := h.counts(); lists != 1 || source.WentBack() > 0 {
		t.Errorf("%d lists, went back %d times", lists, source.WentBack())
	}
}

// TestSourceListsAgain: the process stood still until the restored history had got as far as its watch was. Nothing but
// ListAgain has it list then.
func TestSourceListsAgain(t *testing.T) {
	h := &history{version: 9000, name: "before", stop: make(chan struct{})}
	source, w, until := follow(t, h, slog.New(slog.DiscardHandler))
	watching := func(n int) func() bool { return func() bool { _, watches := h.counts(); return watches >= n } }
	until("watching", watching(1))
	time.Sleep(longWatch)
	h.restart(9100, "restored")
	until("watching on", watching(2))
	if have := w.EgressIPs(); !slices.Equal(have, []string{"before"}) {
		t.Fatalf("%v without a list: client-go lists by itself now", have)
	}
	source.ListAgain()
	if source.CheckListed() == nil {
		t.Error("all kinds have been listed since, before they were")
	}
	until("restored", func() bool { return slices.Equal(w.EgressIPs(), []string{"restored"}) })
	must(t, source.CheckListed())
}

// TestBeginRead: what was read is of another history if it is older than what had come before.
func TestBeginRead(t *testing.T) {
	s := NewSource(nil, slog.New(slog.DiscardHandler), Namespaces())
	must(t, s.tables[0].Replace([]any{namespace("a", "80", "old")}, "90"))
	whole, one, none := s.BeginRead(Namespaces(), ""), s.BeginRead(Namespaces(), "a"), s.BeginRead(Namespaces(), "b")
	must(t, s.tables[0].Update(namespace("a", "95", "meanwhile")))
	for name, c := range map[string]struct {
		check   func(string) error
		version string
		fails   bool
	}{
		"list": {whole, "90", false}, "older list": {whole, "89", true}, "object": {one, "80", false},
		"older object": {one, "79", true}, "unknown object": {none, "1", false},
	} {
		if err := c.check(c.version); (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}
