package compile

import (
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// unit is one object of one feature: the smallest thing that is compiled again.
type unit struct {
	feature int
	key     string
}

// Memo is Full, remembered: it redoes only the units of which something that they read has changed.
type Memo struct {
	State    *plan.State
	features []Feature
	results  map[unit]*plan.Rows
	readers  world.Readers[unit]
	dirty    map[unit]struct{} // the units that Update redoes
	nothing  *plan.Rows        // the empty rows that most pods' units compile to
	started  bool
}

// NewMemo remembers nothing yet: its first Update compiles everything.
func NewMemo(features []Feature) *Memo {
	dirty := map[unit]struct{}{}
	return &Memo{State: plan.New(), features: features, results: map[unit]*plan.Rows{}, dirty: dirty,
		readers: world.NewReaders(dirty), nothing: &plan.Rows{}}
}

// Update brings State up to date with w, which is always the same world, and returns how many units it redid.
func (m *Memo) Update(w *world.World) int {
	if !m.started {
		m.started = true
		w.FollowChanges(m.markUnits)
		return m.compileAll(w)
	}
	n := len(m.dirty)
	for u := range m.dirty {
		m.recompileUnit(u, w)
	}
	clear(m.dirty)
	return n
}

// markUnits marks the units of an object: one that is new has read nothing.
func (m *Memo) markUnits(e world.Entry) {
	for i, f := range m.features {
		if f.Per() == e.Kind {
			m.dirty[unit{i, e.Key}] = struct{}{}
		}
	}
}

// compileAll compiles everything without marking it: the map would keep its size.
func (m *Memo) compileAll(w *world.World) (n int) {
	for i, f := range m.features {
		keys := w.Keys(f.Per())
		for _, k := range keys {
			m.recompileUnit(unit{i, k}, w)
		}
		n += len(keys)
	}
	return n
}

// recompileUnit compiles a unit. A unit without an object compiles to nothing. It is compiled again when the object is
// back.
func (m *Memo) recompileUnit(u unit, w *world.World) {
	f, old, rows := m.features[u.feature], m.results[u], &plan.Rows{}
	if old == nil {
		old = m.nothing
	}
	m.readers.ReaderOf(u).ReadBeside(w, world.Entry{Kind: f.Per(), Key: u.key},
		func(v *world.View) { f.Compile(v, u.key, rows) })
	if rows.IsEmpty() {
		rows = m.nothing
	}
	m.State.Replace(Owner(w, f, u.key), old, rows)
	if m.results[u] = rows; !w.Has(f.Per(), u.key) {
		m.readers.ForgetUnit(u)
		delete(m.results, u)
	}
}

// Size is the number of units remembered.
func (m *Memo) Size() int { return len(m.results) }
