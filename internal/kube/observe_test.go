package kube

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/world"
)

// written is a history of objects: by version, which of them exist and the versions that these have.
type written []map[string]int

func (h written) now() int { return len(h) - 1 }

// write changes an object, or deletes it.
func (h *written) write(name string, exists bool) {
	next := maps.Clone((*h)[h.now()])
	delete(next, name)
	if *h = append(*h, next); exists {
		next[name] = h.now()
	}
}

func (h written) objects(at int) (out []any) {
	for _, name := range slices.Sorted(maps.Keys(h[at])) {
		out = append(out, version(name, strconv.Itoa(h[at][name])))
	}
	return out
}

func (h written) metadata(at int) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(at)}}
	for _, o := range h.objects(at) {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: o.(*corev1.Node).ObjectMeta})
	}
	return list
}

// observed is a Source of Nodes with its world, and up to which version each Node is known.
type observed struct {
	written
	source *Source
	world  *world.World
	known  map[string]int
	watch  int
}

func newObserved() *observed {
	o := &observed{written: written{{}, {}}, watch: 1, source: NewSource(nil, slog.New(slog.DiscardHandler), Nodes()),
		world: world.New("", &world.Config{}), known: map[string]int{}}
	if err := o.source.tables[0].Replace(nil, "1"); err != nil {
		panic(err)
	}
	return o
}

// learn notes that all of some Nodes is known up to a version.
func (o *observed) learn(at int, names ...string) {
	for _, name := range names {
		o.known[name] = max(o.known[name], at)
	}
}

// bringNext has the watch bring the next event.
func (o *observed) bringNext() error {
	before, t := o.written[o.watch], o.source.tables[0]
	o.watch++
	o.learn(o.watch, nodeNames...)
	for _, name := range nodeNames {
		v, is := o.written[o.watch][name]
		if _, was := before[name]; was && !is {
			return t.Delete(version(name, strconv.Itoa(o.watch)))
		}
		if is && v == o.watch {
			return t.Update(version(name, strconv.Itoa(v)))
		}
	}
	t.UpdateResourceVersion(strconv.Itoa(o.watch))
	return nil
}

// list has a request list everything as it is at a version.
func (o *observed) list(at int) (err error) {
	for _, name := range nodeNames { // a Node that was never known can still come, and go, by the watch
		if _, listed := o.written[at][name]; listed || o.world.Node(name) != nil {
			o.learn(at, name)
		}
	}
	outdated, err := o.source.ObserveList(Nodes(), "", o.metadata(at))
	if outdated {
		for _, node := range o.objects(at) {
			err = o.source.Observe(node)
		}
	}
	return err
}

var nodeNames = []string{"a", "b", "c"}

// apply takes all changes into the world, and returns the first Node that is not as it was at the version up to which
// it is known.
func (o *observed) apply() string {
	for len(o.source.Changes()) > 0 {
		(<-o.source.Changes())(o.world)
	}
	for _, name := range nodeNames {
		want, have := "", ""
		if v, is := o.written[o.known[name]][name]; is {
			want = strconv.Itoa(v)
		}
		if n := o.world.Node(name); n != nil {
			have = n.Version
		}
		if have != want {
			return fmt.Sprintf("%s is at %q, and was at %q at version %d; the watch is at %d of %d", name, have, want,
				o.known[name], o.watch, o.now())
		}
	}
	return ""
}

// TestObserved: whatever comes in which order by the watch, lists of the watch, lists of requests and other answers,
// an object is known as it was at the latest version of which anything has come. No end is undone.
func TestObserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := newObserved()
		some := func() string { return rapid.SampledFrom(nodeNames).Draw(t, "node") }
		at := func(from int) int { return rapid.IntRange(from, o.now()).Draw(t, "version") }
		actions := map[string]func(*rapid.T){
			"write":  func(*rapid.T) { o.write(some(), true) },
			"delete": func(*rapid.T) { o.write(some(), false) },
			"watch": func(t *rapid.T) {
				if o.watch == o.now() {
					t.Skip()
				}
				check(t, o.bringNext())
			},
			"watch begins again": func(t *rapid.T) {
				o.watch = at(o.watch)
				o.learn(o.watch, nodeNames...)
				check(t, o.source.tables[0].Replace(o.objects(o.watch), strconv.Itoa(o.watch)))
			},
			"list": func(t *rapid.T) { check(t, o.list(at(1))) },
			"answer": func(t *rapid.T) {
				name := some()
				if v, is := o.written[at(1)][name]; is {
					o.learn(v, name)
					check(t, o.source.Observe(version(name, strconv.Itoa(v))))
				}
			},
		}
		actions[""] = func(t *rapid.T) {
			if wrong := o.apply(); wrong != "" {
				t.Fatal(wrong)
			}
		}
		t.Repeat(actions)
	})
}

func check(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// TestObserveListAfterARestore: what a list of the former history lacked is there again. A list of the new one, whose
// versions are lower yet, says nothing of what is known.
func TestObserveListAfterARestore(t *testing.T) {
	s := NewSource(nil, slog.New(slog.DiscardHandler), Nodes())
	w, table := world.New("", &world.Config{}), s.tables[0]
	table.send = func(c Change) { c(w) }
	list := func(version string) *metav1.PartialObjectMetadataList {
		return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: version}}
	}
	must(t, table.Replace([]any{version("a", "7")}, "90"))
	if _, err := s.ObserveList(Nodes(), "", list("60")); err != nil || nodeVersions(w) != "a@7 " {
		t.Errorf("a list of a lower version left %q", nodeVersions(w))
	}
	if _, err := s.ObserveList(Nodes(), "", list("100")); err != nil || nodeVersions(w) != "" {
		t.Errorf("a list without it left %q", nodeVersions(w))
	}
	must(t, table.Replace([]any{version("a", "7")}, "61"))
	must(t, table.Update(version("a", "62")))
	if nodeVersions(w) != "a@62 " {
		t.Errorf("after the restore there is %q", nodeVersions(w))
	}
}

// TestListOfAnotherHistory: after a restore that no watch has found out the new history may have passed what was seen.
// An object at a version that had ended tells it apart, and then nothing is taken in.
func TestListOfAnotherHistory(t *testing.T) {
	for name, c := range map[string]struct {
		node, at, list string
		fails          bool
	}{
		"as it is": {"a", "70", "95", false}, "changed since": {"a", "95", "95", false},
		"a former version":          {"a", "60", "95", true},
		"a list before its version": {"a", "60", "65", false},
		"an end undone":             {"b", "60", "95", true},
		"a list before the end":     {"b", "60", "75", false},
		"a new one":                 {"c", "95", "95", false},
	} {
		s := NewSource(nil, slog.New(slog.DiscardHandler), Nodes())
		w, table := world.New("", &world.Config{}), s.tables[0]
		table.send = func(c Change) { c(w) }
		must(t, table.Replace([]any{version("a", "70"), version("b", "60"), version("d", "50")}, "75"))
		must(t, table.Delete(version("b", "80")))
		list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: c.list}}
		list.Items = []metav1.PartialObjectMetadata{{ObjectMeta: version(c.node, c.at).ObjectMeta}}
		_, err := s.ObserveList(Nodes(), "", list)
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
		if is := w.Node("d") == nil; c.fails && is {
			t.Errorf("%s: ends of another history are taken in", name)
		}
	}
}

// TestListRequestHasTheSelectorOfTheWatch: an object that the watch never brings counts as one of another history, and
// no pod of its namespace starts.
func TestListRequestHasTheSelectorOfTheWatch(t *testing.T) {
	c, err := NewClients(&rest.Config{Host: "http://localhost"})
	must(t, err)
	for _, k := range []Kind{EndpointSlices(), Services()} {
		if is := c.ListRequest(k, "shop").URL().Query().Get("labelSelector"); is != k.labelSelector() {
			t.Errorf("%s are listed with label selector %q, and watched with %q", k.pluralName(), is, k.labelSelector())
		}
	}
}

// TestObserveListOfANamespace takes only what is in that namespace for gone.
func TestObserveListOfANamespace(t *testing.T) {
	s := NewSource(nil, slog.New(slog.DiscardHandler), Pods())
	w, pod := world.New("", &world.Config{}), func(namespace string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", ResourceVersion: "7"}}
	}
	s.tables[0].send = func(c Change) { c(w) }
	must(t, s.tables[0].Replace([]any{pod("shop"), pod("other")}, "9"))
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "10"}}
	outdated, err := s.ObserveList(Pods(), "shop", list)
	if must(t, err); outdated || w.Pod("shop/p") != nil || w.Pod("other/p") == nil {
		t.Errorf("of shop there is %v, of the other one %v", w.Pod("shop/p"), w.Pod("other/p"))
	}
}

// TestSeenNamesUnlistedObjects: others are asked for the version of the list that lacked an object, until the watch has
// brought the version of the end.
func TestSeenNamesUnlistedObjects(t *testing.T) {
	s := NewSource(nil, slog.New(slog.DiscardHandler), Nodes())
	table := s.tables[0]
	must(t, table.Replace([]any{version("a", "7"), version("b", "8")}, "9"))
	s.ObserveList(Nodes(), "", &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "20"},
		Items: []metav1.PartialObjectMetadata{{ObjectMeta: version("b", "8").ObjectMeta}}})
	if seen := table.seenVersion(); seen != "20" {
		t.Errorf("seen is %q", seen)
	}
	must(t, table.Delete(version("a", "12")))
	if seen := table.seenVersion(); seen != "12" {
		t.Errorf("after the end it is %q", seen)
	}
}
