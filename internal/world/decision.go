package world

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Decision is what a controller has decided about one object. It stands over what the API shows of the object, so that
// no decision sees less than the one before it, however late a watch is.
type Decision struct {
	// UID is that of the object that the decision is about: it is not about another one of the same name. "": the
	// decision makes an object (Decides.New).
	UID string
	// Status is of the type that the kind has for it: Placement of an EgressIP. nil: nothing but conditions is decided.
	Status any
	// Labels are the desired labels of a prefix: the object must have no others of that prefix.
	Labels Labels
	// Mark is that of an EgressIP; 0: nothing is decided about it.
	Mark int
	// Conditions take the place of those of their type. One without a status is not to be there.
	Conditions []Condition
}

// Labels are all of an object with a prefix, which has a "/" at its end: their keys, sorted. Each has an empty value.
// Without a prefix nothing is decided about labels.
type Labels struct {
	Prefix string
	Keys   []string
}

// mergedOver returns an object's labels, with the decided ones instead of all others of their prefix.
func (l Labels) mergedOver(shown map[string]string) map[string]string {
	if l.Prefix == "" {
		return shown
	}
	out := maps.Clone(shown)
	maps.DeleteFunc(out, func(key, _ string) bool { return strings.HasPrefix(key, l.Prefix) })
	if out == nil {
		out = map[string]string{}
	}
	for _, key := range l.Keys {
		out[key] = ""
	}
	return out
}

// Decides is how what was decided stands over objects of a kind.
type Decides[T any] struct {
	UID func(*T) string
	// Make returns the object that a decision without a UID makes, where none of its key exists; nil: it makes none.
	// Without Make no decision does.
	Make func(key string, d Decision) *T
	// Over returns an object as the API shows it, with decisions instead of its own status.
	Over func(shown *T, d Decision) *T
	// Same says whether two objects say the same of all that is decided about the kind.
	Same func(a, b *T) bool
}

// over is a decision, and the object as the API shows it; nil: it does not exist yet.
type over[T any] struct {
	shown    *T
	decision Decision
}

// Decide puts a decision about an object over what the API shows of it, and over earlier decisions about it.
func (w *World) Decide(k Kind, key string, d Decision) {
	w.kinds[k].putDecision(key, d)
	w.renewDerived()
}

// Undecide takes all decisions away: every object is as the API shows it.
func (w *World) Undecide() {
	for _, t := range w.kinds {
		t.dropDecisions()
	}
	w.renewDerived()
}

// ShownAnew yields the objects with a decision of which the API has shown a new version since the last call. A version
// that shows just what was decided changes nothing in the world.
func (w *World) ShownAnew() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for k, t := range w.kinds {
			for _, key := range t.shownAnew() {
				if !yield(Entry{k, key}) {
					return
				}
			}
		}
	}
}

// Shown is an object of a kind as the API last showed it, whatever was decided of it; or nil.
func Shown[T any](w *World, k Kind, key string) *T {
	t := tableOf[T](w.tables, k)
	if o := t.decided[key]; o != nil {
		return o.shown
	}
	return t.rows[key]
}

// Undone is an object as the API shows it and as it should be, if these differ; else nil. An object that does not exist
// yet is shown as nil.
func Undone[T any](w *World, k Kind, key string) (shown, should *T) {
	t := tableOf[T](w.tables, k)
	o := t.decided[key]
	if o == nil || o.shown != nil && t.Decides.Same(o.shown, t.rows[key]) {
		return nil, nil
	}
	return o.shown, t.rows[key]
}

// withDecision takes in an object as the API shows it, and returns it with what was decided in place.
func (t *table[T]) withDecision(o *T) *T {
	key := t.Key(o)
	was := t.decided[key]
	switch {
	case was == nil:
		return o
	case was.shown == nil || was.decision.UID != t.Decides.UID(o):
		delete(t.decided, key)
		delete(t.anew, key)
		return o
	}
	was.shown, t.anew[key] = o, true
	return t.Decides.Over(o, was.decision)
}

func (t *table[T]) putDecision(key string, d Decision) {
	row, was := t.rows[key], t.decided[key]
	if d.UID == "" && t.Decides.Make != nil && (row == nil || was != nil && was.shown == nil) {
		t.makeRow(key, d)
		return
	}
	if row == nil || t.Decides.UID(row) != d.UID {
		return
	}
	if was == nil {
		was = &over[T]{shown: row}
		t.decided[key] = was
	}
	was.decision = was.decision.followedBy(d)
	now := t.Decides.Over(was.shown, was.decision)
	if t.Decides.Same(row, now) {
		return
	}
	t.putRow(key, now)
}

// makeRow has an object exist by a decision alone, until the API shows one of its key.
func (t *table[T]) makeRow(key string, d Decision) {
	made := t.Decides.Make(key, d)
	if made == nil {
		t.deleteRow(key)
		return
	}
	t.decided[key] = &over[T]{decision: d}
	t.putRow(key, made)
}

func (t *table[T]) dropDecisions() {
	decided := t.decided
	t.decided, t.anew = map[string]*over[T]{}, map[string]bool{}
	for key, o := range decided {
		if o.shown == nil {
			t.deleteRow(key)
		} else {
			t.putRow(key, o.shown)
		}
	}
}

func (t *table[T]) shownAnew() []string {
	if len(t.anew) == 0 {
		return nil
	}
	keys := slices.Sorted(maps.Keys(t.anew))
	clear(t.anew)
	return keys
}

// followedBy is a decision with a later one over it.
func (d Decision) followedBy(later Decision) Decision {
	if later.Status == nil {
		later.Status = d.Status
	}
	if later.Labels.Prefix == "" {
		later.Labels = d.Labels
	}
	later.Mark = cmp.Or(later.Mark, d.Mark)
	later.Conditions = slices.Concat(later.Conditions, withoutTypes(d.Conditions, later.Conditions))
	return later
}

// ConditionsOver returns an object's conditions with the decided ones instead of others of their type.
func ConditionsOver(shown, decided []Condition) []Condition {
	is := slices.DeleteFunc(slices.Clone(decided), func(c Condition) bool { return c.Status == "" })
	return slices.Concat(is, withoutTypes(shown, decided))
}

// withoutTypes are conditions whose types are not among those of others.
func withoutTypes(list, others []Condition) []Condition {
	return slices.DeleteFunc(slices.Clone(list), func(c Condition) bool {
		return slices.ContainsFunc(others, func(o Condition) bool { return o.Type == c.Type })
	})
}

// SameConditions says whether two objects have the same conditions, in whatever order.
func SameConditions(a, b []Condition) bool {
	lacks := func(c Condition) bool { return !slices.ContainsFunc(b, c.Same) }
	return len(a) == len(b) && !slices.ContainsFunc(a, lacks)
}

// Same compares two conditions; the API may give a time back in another zone.
func (c Condition) Same(o Condition) bool {
	since := c.Since.Equal(o.Since)
	c.Since = o.Since // the same time may be in another zone
	return since && c == o
}
