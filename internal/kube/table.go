package kube

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	"github.com/egret-net/egret/internal/world"
)

// Change brings one thing of the API into a world. The one loop that owns the world calls it,
// each change once and in order.
type Change func(*world.World)

// row is an object, converted already: nothing of what the API server sent is kept.
type row struct {
	key, version string
	created      time.Time
	set          Change
}

// table follows one kind of object. It is the store of a reflector, and stores keys and versions alone: the world has
// the objects.
type table struct {
	convert func(obj any) Change    // of an object of the kind
	remove  func(key string) Change // of "namespace/name", or "name"
	send    func(Change)            // blocks while the loop is behind
	// with each list that showed that history went back from one version to another, when it is in the world
	back    func(seen, list string)
	mu      sync.Mutex        // also keeps the order of sends
	known   map[string]string // key to resourceVersion
	latest  string            // resourceVersion up to which the watch has brought everything; "": nothing yet
	newest  string            // the version of an object, or of its end, that was sent last
	lacks   string            // that of the last list without objects that were known: their ends have no version here
	first   string            // the version of the first list, or of the first one since history went back
	waiting []waiter
	gone    map[string]tombstone
	listed  bool
	inWorld atomic.Bool // the first list has been applied to the world
	forked  bool        // the API server has not reached what was seen of it: its next list is the truth
	// pastFirst: newest is newer than first. A loop that is behind holds mu, and reads it.
	pastFirst atomic.Bool
	// signs counts what the watch has brought, bookmarks included. A loop that is behind holds mu, and reads signs.
	signs  atomic.Uint64
	stream stream
	still  stillness // of Source.LookAtWatches
}

var (
	_ cache.TransformingStore      = &table{}
	_ cache.ResourceVersionUpdater = &table{}
)

// Transformer converts an object of a list as soon as it is there, so that the whole list is never held as it was sent.
func (t *table) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		t.stream.tries.Add(1)
		return t.rowOf(obj)
	}
}

func (t *table) rowOf(obj any) (*row, error) {
	if r, done := obj.(*row); done {
		return r, nil
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, fmt.Errorf("an object of the API without metadata: %w", err)
	}
	return &row{key: keyOf(m.GetNamespace(), m.GetName()), version: m.GetResourceVersion(),
		created: m.GetCreationTimestamp().Time, set: t.convert(obj)}, nil
}

func keyOf(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func splitKey(key string) (namespace, name string) {
	if namespace, name, namespaced := strings.Cut(key, "/"); namespaced {
		return namespace, name
	}
	return "", key
}

// Add is Update: there is no difference here.
func (t *table) Add(obj any) error { return t.Update(obj) }

// Update takes an object from the watch.
func (t *table) Update(obj any) error {
	t.signs.Add(1)
	r, err := t.rowOf(obj)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.putNewer(r)
	t.noteVersion(r.version)
	return nil
}

// noteVersion notes how far the watch is: it brings all changes of a kind in order of their versions. Its changes have
// been sent by then.
func (t *table) noteVersion(version string) {
	if isNewer(version, t.latest) {
		t.latest = version
		t.forgetPast()
		t.wakeWaiting()
	}
}

// UpdateResourceVersion takes the version of a bookmark: the watch has brought everything up to it.
func (t *table) UpdateResourceVersion(version string) {
	t.signs.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.noteVersion(version)
}

// observeObject takes an object that the API server gave in answer to a request of our own. It may be here before the
// watch brings it, and after the watch has brought its end: an object that is not known and not newer than what the
// watch has brought is no more.
func (t *table) observeObject(obj any) error {
	r, err := t.rowOf(obj)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isMissing(r.key, r.version) {
		t.putNewer(r)
	}
	return nil
}

// isOutdated says whether an object, as the API server has it, has yet to be observed.
func (t *table) isOutdated(key, version string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.isMissing(key, version)
}

func (t *table) isMissing(key, version string) bool {
	if known, is := t.known[key]; is {
		return isNewer(version, known)
	}
	return isNewer(version, t.latest) // else the watch has brought its end
}

// isOverwritten reports whether an object was written or deleted after a version of it: a watch that has not reached
// that version says nothing.
func (t *table) isOverwritten(key, version string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, is := t.known[key]; is {
		return isNewer(known, version)
	}
	return t.latest != "" && !isNewer(version, t.latest)
}

// putNewer sends what is newer than what was sent.
func (t *table) putNewer(r *row) {
	if gone := t.gone[r.key]; t.isPast(r.key, r.version) {
		gone.named = false // it was made again since the end that named it
		t.gone[r.key] = gone
		return
	}
	if old, is := t.known[r.key]; is && !isNewer(r.version, old) {
		return
	}
	t.known[r.key] = r.version
	t.noteSeenVersion(r.version)
	t.send(r.set)
}

// isNewer says that version a comes after b; if they cannot be compared, it does.
func isNewer(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || c > 0
}

// Older says that version a comes before b; if they cannot be compared, it does not.
func Older(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c < 0
}

// Delete takes the end of an object from the watch. An object that was observed later has been made again.
func (t *table) Delete(obj any) error {
	t.signs.Add(1)
	m, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Errorf("an object of the API without metadata: %w", err)
	}
	key := keyOf(m.GetNamespace(), m.GetName())
	t.mu.Lock()
	defer t.mu.Unlock()
	version := m.GetResourceVersion()
	if gone, is := t.gone[key]; is {
		gone.named = true
		t.gone[key] = gone
	}
	t.noteSeenVersion(version)
	if known, is := t.known[key]; !is || !Older(version, known) {
		delete(t.known, key)
		t.send(t.remove(key))
	}
	t.noteVersion(version)
	return nil
}

// Replace takes a whole list, of version as given: it is one change, with the deletion of what has gone while nobody
// watched. The oldest object comes first: of nodes that claim the same, the world believes the one that it knew first.
// If history went back, all of the list is taken, and nothing is kept that is not in it.
func (t *table) Replace(list []any, version string) error {
	t.stream.noteList()
	t.mu.Lock()
	defer t.mu.Unlock()
	rows, err := t.oldestFirst(list)
	if err != nil {
		return err
	}
	back := t.wentBack(rows, version)
	if back {
		t.newest, t.lacks = "", ""
		clear(t.gone)
	}
	if back || !t.listed {
		t.first = version
	}
	var changes []Change
	there := make(map[string]bool, len(list))
	for _, r := range rows {
		there[r.key] = true
		if old, is := t.known[r.key]; back || !t.isPast(r.key, r.version) && (!is || isNewer(r.version, old)) {
			t.known[r.key] = r.version
			t.noteSeenVersion(r.version)
			changes = append(changes, r.set)
		}
	}
	gone := t.removeAllBut(there, func(old string) bool {
		return !back && version != "" && isNewer(old, version) // an object that we wrote after the list was made exists
	})
	if len(gone) > 0 || t.unnamedEnd() != "" {
		t.lacks = version
	}
	t.notePastFirst()
	changes = append(changes, gone...)
	if back {
		changes = append(changes, t.tellBack(t.latest, version))
	}
	t.latest, t.forked = version, false
	t.forgetPast()
	t.send(t.combineChanges(changes))
	t.wakeWaiting()
	return nil
}

// wentBack says whether a list is not of the history that was followed, but of an earlier state and what was made of
// it: etcd was restored from a backup. An API server that lags cannot give such a list. A reflector of client-go (0.37)
// asks for one at least as new as the last version that it was given, or, when the API server refuses that, for a
// consistent read; only its first one may be of any age.
func (t *table) wentBack(rows []*row, version string) bool {
	return t.forked || Older(version, t.latest) || slices.ContainsFunc(rows, func(r *row) bool {
		known, is := t.known[r.key]
		return is && Older(r.version, known) && !isNewer(known, version)
	})
}

func (t *table) removeAllBut(there map[string]bool, stays func(version string) bool) []Change {
	var changes []Change
	for key, version := range t.known {
		if !there[key] && !stays(version) {
			delete(t.known, key)
			changes = append(changes, t.remove(key))
		}
	}
	return changes
}

func (t *table) tellBack(seen, list string) Change {
	return func(*world.World) {
		t.back(seen, list)
	}
}

// markForked notes that the API server's history is not the one that was followed.
func (t *table) markForked() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forked = true
}

func (t *table) isForked() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.forked
}

// latestOf is the version of the last that has come of an object, or of all if key is "".
func (t *table) latestOf(key string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if key == "" {
		return t.latest
	}
	return t.known[key]
}

func (t *table) oldestFirst(list []any) ([]*row, error) {
	rows := make([]*row, len(list))
	for i, obj := range list {
		r, err := t.rowOf(obj)
		if err != nil {
			return nil, err
		}
		rows[i] = r
	}
	slices.SortStableFunc(rows, func(a, b *row) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.key, b.key))
	})
	return rows, nil
}

// combineChanges returns those of a list as one, which also notes that the list is in the world.
func (t *table) combineChanges(changes []Change) Change {
	t.listed = true
	return func(w *world.World) {
		for _, c := range changes {
			c(w)
		}
		t.inWorld.Store(true)
	}
}

// Resync has nothing to do: the world is not forgotten.
func (t *table) Resync() error { return nil }
