package world

import (
	"iter"
	"maps"
	"slices"

	"github.com/egret-net/egret/internal/ref"
)

// Spec is what a world must know of a kind of object to keep a table of it.
type Spec[T any] struct {
	// One is the kind of one object in an Entry, and All that of the list of all of them; 0: nobody asks for the list.
	One, All Kind
	// Object is what references call the objects of the kind: "Pod".
	Object string
	Key    func(*T) string
	// Same says whether a change from one object to another concerns nobody; nil: every change concerns somebody.
	Same func(a, b *T) bool
	// Changed brings indexes up to date when an object has become another; nil stands for no object. It notes what
	// changes in addition to the object and the list.
	Changed func(old, now *T)
	// NotesAll says that Changed notes all that changes, the object and the list included.
	NotesAll bool
	// Decides is of the kinds that a controller decides about.
	Decides Decides[T]
}

// table is all objects of a kind, by key.
type table[T any] struct {
	Spec[T]
	in      *tables
	rows    map[string]*T // as everybody reads it: the API's, with decisions in its place
	decided map[string]*over[T]
	anew    map[string]bool // those of decided that the API has shown since the last call of ShownAnew
}

// kept is a table of any kind.
type kept interface {
	objectKind() string
	allKeys() []string
	hasKey(key string) bool
	putDecision(key string, d Decision)
	dropDecisions()
	shownAnew() []string
}

// Keep has a world keep a table of a kind. It is called before there are objects. The rows are for reading.
func Keep[T any](w *World, s Spec[T]) (rows map[string]*T) {
	t := &table[T]{Spec: s, in: w.tables, rows: map[string]*T{}, decided: map[string]*over[T]{},
		anew: map[string]bool{}}
	w.kinds[s.One] = t
	return t.rows
}

func tableOf[T any](w *tables, k Kind) *table[T] { return w.kinds[k].(*table[T]) }

// Get is an object of a kind, or nil.
func Get[T any](w *View, k Kind, key string) *T {
	w.noteRead(k, key)
	return tableOf[T](w.tables, k).rows[key]
}

// Each yields all objects of a kind in order of their keys.
func Each[T any](w *View, k Kind) iter.Seq[*T] {
	t := tableOf[T](w.tables, k)
	w.noteRead(t.All, "")
	return func(yield func(*T) bool) {
		for _, key := range slices.Sorted(maps.Keys(t.rows)) {
			if w.noteRead(k, key); !yield(t.rows[key]) {
				return
			}
		}
	}
}

// Set adds or replaces an object of a kind, as the API shows it.
func Set[T any](w *World, k Kind, o *T) {
	tableOf[T](w.tables, k).setShown(o)
	w.renewDerived()
}

// Del removes an object of a kind.
func Del[T any](w *World, k Kind, key string) {
	tableOf[T](w.tables, k).deleteRow(key)
	w.renewDerived()
}

func (t *table[T]) objectKind() string { return t.Object }

func (t *table[T]) allKeys() []string { return slices.Collect(maps.Keys(t.rows)) }

func (t *table[T]) hasKey(key string) bool { return t.rows[key] != nil }

func (t *table[T]) setShown(o *T) { t.putRow(t.Key(o), t.withDecision(o)) }

// putRow replaces what everybody reads of one object.
func (t *table[T]) putRow(key string, now *T) {
	old := t.rows[key]
	t.rows[key] = now
	switch {
	case old == nil:
		t.noteListed(key)
	case !t.NotesAll && (t.Same == nil || !t.Same(old, now)):
		t.in.noteChanged(t.One, key)
	}
	if t.Changed != nil {
		t.Changed(old, now)
	}
}

func (t *table[T]) deleteRow(key string) {
	old := t.rows[key]
	if old == nil {
		return
	}
	delete(t.rows, key)
	delete(t.decided, key)
	delete(t.anew, key)
	t.noteListed(key)
	if t.Changed != nil {
		t.Changed(old, nil)
	}
}

// noteListed notes that an object comes or goes.
func (t *table[T]) noteListed(key string) {
	if t.NotesAll {
		return
	}
	if t.in.noteChanged(t.One, key); t.All != 0 {
		t.in.noteChanged(t.All, "")
	}
}

// Keys lists the objects of a kind, in no order; for the kinds that features compile one by one.
func (w *World) Keys(k Kind) []string {
	if t, is := w.kinds[k]; is {
		return t.allKeys()
	}
	return []string{""}
}

// Object is what references call an object of a kind; zero of the cluster default network, and of kinds that there is
// one of.
func (w *World) Object(k Kind, key string) ref.Object {
	t, is := w.kinds[k]
	if !is || k == KindNetwork && key == ref.DefaultNetwork {
		return ref.Object{}
	}
	return ref.Of(t.objectKind(), key)
}

// ObjectKinds are all that references call the kinds of objects, sorted.
func (w *World) ObjectKinds() []string {
	var names []string
	for _, t := range w.kinds {
		names = append(names, t.objectKind())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Has says whether the object of a kind exists.
func (w *World) Has(k Kind, key string) bool {
	t, is := w.kinds[k]
	return !is || t.hasKey(key)
}
