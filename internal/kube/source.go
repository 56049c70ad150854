package kube

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/egret-net/egret/internal/world"
)

// backlog is how many changes wait for the loop before the watches do.
const backlog = 1024

// Source follows objects of the API. While the API server is away, what was last known stands; when it is back, what
// has gone meanwhile is deleted.
type Source struct {
	clients   *Clients
	log       *slog.Logger
	kinds     []Kind
	tables    []*table // of kinds, in their order
	changes   chan Change
	wentBack  atomic.Int64
	stopped   chan struct{}
	join      *join
	ended     func(Kind) // called with the kind of a watch that stood still
	stringsMu sync.Mutex
	strings   interner
}

// NewSource prepares to follow objects of the given kinds.
func NewSource(clients *Clients, log *slog.Logger, kinds ...Kind) *Source {
	s := &Source{
		clients: clients, log: log, kinds: kinds,
		changes: make(chan Change, backlog), stopped: make(chan struct{}), join: newJoin(),
		ended: func(Kind) {},
	}
	for _, k := range kinds {
		convert, remove := k.convertAndRemove(s)
		s.tables = append(s.tables, &table{convert: convert, remove: remove, send: s.sendChange,
			known: map[string]string{}, gone: map[string]tombstone{},
			back: func(seen, list string) { s.tellBack(k.pluralName(), seen, list) }})
	}
	return s
}

// Changes must be applied to the world in order, by one loop.
func (s *Source) Changes() <-chan Change { return s.changes }

// Synced says whether the first list of every resource has been applied to the world.
func (s *Source) Synced() bool { return len(s.ListsMissing()) == 0 }

// ListsMissing returns the resources whose first list has not been applied to the world yet.
func (s *Source) ListsMissing() (plurals []string) {
	for i, k := range s.kinds {
		if !s.tables[i].inWorld.Load() {
			plurals = append(plurals, k.pluralName())
		}
	}
	return plurals
}

// WentBack counts the lists, of those that have been applied to the world, that showed that the history of a resource
// went back: etcd was restored from a backup. Earlier versions cannot be compared with those that follow.
func (s *Source) WentBack() int64 { return s.wentBack.Load() }

func (s *Source) tellBack(plural, seen, list string) {
	s.wentBack.Add(1)
	s.log.Warn("resourceVersions went back, so etcd was restored from a backup: all objects are taken as the API "+
		"server has them now, and what it has lost of our "+
		"reports and decisions is written again; what others wrote since the backup is lost",
		"resource", plural, "seen", seen, "now", list)
}

// Observe takes an object that the API server gave in answer to a request, so that it is in the world before the watch
// brings it.
func (s *Source) Observe(obj any) error {
	m, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Errorf("an object of the API without metadata: %w", err)
	}
	if t := s.tableOf(m, obj); t != nil {
		return t.observeObject(obj)
	}
	return fmt.Errorf("%T %s is of a kind that is not followed", obj, m.GetName())
}

// tableOf returns the table that follows an object, or nil.
func (s *Source) tableOf(m metav1.Object, obj any) *table {
	for i, k := range s.kinds {
		if k.isObject(obj) && selectsKey(k, keyOf(m.GetNamespace(), m.GetName())) {
			return s.tables[i]
		}
	}
	return nil
}

// tableFor returns the table that follows an object of a resource, or nil.
func (s *Source) tableFor(plural, key string) *table {
	for i, k := range s.kinds {
		if k.pluralName() == plural && selectsKey(k, key) {
			return s.tables[i]
		}
	}
	return nil
}

// Overwritten reports whether an object has been written or deleted since the write that gave it a version, as far as
// that is known.
func (s *Source) Overwritten(k Kind, key, version string) bool {
	return s.tableFor(k.pluralName(), key).isOverwritten(key, version)
}

// Applied returns when the world has all that was observed, or brought by a watch, before the call.
func (s *Source) Applied(ctx context.Context) error {
	applied := make(chan struct{})
	s.sendChange(func(*world.World) {
		close(applied)
	})
	select {
	case <-applied:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Run follows until ctx is done. It is called once.
func (s *Source) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for i, k := range s.kinds {
		wg.Go(func() { s.newReflector(k, s.tables[i]).RunWithContext(ctx) })
	}
	<-ctx.Done()
	close(s.stopped)
	wg.Wait()
}

// Store returns what the reflector of a kind fills. A caller that does not Run the source fills it itself.
func (s *Source) Store(k Kind) cache.TransformingStore {
	all, _ := k.fieldSelectors()
	for i, x := range s.kinds {
		if selects, _ := x.fieldSelectors(); x.pluralName() == k.pluralName() && selects.String() == all.String() {
			return s.tables[i]
		}
	}
	return nil
}

// MarkForked notes that the API server's history is not the one that a kind has followed: a list comes. A caller that
// does not Run the source calls it.
func (s *Source) MarkForked(k Kind) { s.Store(k).(*table).markForked() }

// LatestOf is how far the watch of a kind is. A caller that does not Run the source goes on from there.
func (s *Source) LatestOf(k Kind) string { return s.Store(k).(*table).latestOf("") }

// ListAgain has all kinds be listed: the API server's history may not be the one that was followed.
func (s *Source) ListAgain() {
	for i, k := range s.kinds {
		s.tables[i].markForked()
		s.tables[i].stream.endCurrent()
		s.ended(k)
	}
}

// CheckListed fails while a kind that decides claims has yet to be listed since etcd was restored. Objects of it that
// are observed meanwhile count as older than those that are there.
func (s *Source) CheckListed() error {
	for i, k := range s.kinds {
		if k.decidesClaims() && s.tables[i].isForked() {
			return fmt.Errorf("etcd was restored from a backup, and %s have not been listed since", k.pluralName())
		}
	}
	return nil
}

// BeginRead comes before a consistent read of a kind, or of an object of it if key is not "". The check fails if what
// was read is older than what had come by then: etcd was restored, and no watch has found that out yet.
func (s *Source) BeginRead(k Kind, key string) (check func(version string) error) {
	seen := "" // of a kind that is not followed nothing is
	if t := s.tableFor(k.pluralName(), key); t != nil {
		seen = t.latestOf(key)
	}
	return func(version string) error {
		if Older(version, seen) {
			return fmt.Errorf("etcd was restored from a backup: version %s of %s was seen, and the API server is at %s",
				seen, k.pluralName(), version)
		}
		return nil
	}
}

// StoreOf returns the store that follows an object, or nil. A caller that does not Run the source fills it itself.
func (s *Source) StoreOf(obj metav1.Object) cache.TransformingStore {
	if t := s.tableOf(obj, obj); t != nil {
		return t
	}
	return nil
}

func (s *Source) sendChange(c Change) {
	select {
	case s.changes <- c:
	case <-s.stopped:
	}
}

// withInterner has something done with the strings that are known.
func (s *Source) withInterner(do func(*interner)) {
	s.stringsMu.Lock()
	defer s.stringsMu.Unlock()
	do(&s.strings)
}

func (s *Source) newReflector(k Kind, t *table) *cache.Reflector {
	all, served := k.fieldSelectors()
	resumes := &resumer{stream: &t.stream, forked: t.markForked, refusable: !served.Empty()}
	options := func(o *metav1.ListOptions) {
		o.LabelSelector, o.FieldSelector = k.labelSelector(), all.String()
		if !resumes.refused {
			o.FieldSelector = fields.AndSelectors(all, served).String()
		}
	}
	resumes.ListWatch = cache.NewFilteredListWatchFromClient(k.restClient(s.clients), k.pluralName(),
		metav1.NamespaceAll, options)
	return cache.NewReflectorWithOptions(resumes, k.exampleObject(), t, cache.ReflectorOptions{
		Name: k.pluralName(),
		// The API server may be away for a restart only: client-go's own 30 s would be an outage of ours.
		Backoff: &wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.2, Cap: 800 * time.Millisecond,
			Steps: 10},
	})
}
