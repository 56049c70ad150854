package compile

import (
	"maps"
	"slices"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// unit is one object of one feature: the smallest thing that is compiled again.
type unit struct {
	feature int
	key     string
}

// result is what a unit compiled to, and what it read beside its own object.
type result struct {
	rows  *plan.Rows
	reads []world.Entry
}

// Memo is Full, remembered: it redoes only the units of which something that they read has changed.
type Memo struct {
	State    *plan.State
	features []Feature
	results  map[unit]result
	readers  map[world.Entry]map[unit]struct{}
	dirty    map[unit]struct{} // the units that Update redoes
	nothing  *plan.Rows        // what most pods' units compile to
	reads    []world.Entry     // of the unit that is being compiled
	started  bool
}

// NewMemo remembers nothing yet: its first Update compiles everything.
func NewMemo(features []Feature) *Memo {
	return &Memo{State: plan.New(), features: features, results: map[unit]result{},
		readers: map[world.Entry]map[unit]struct{}{}, dirty: map[unit]struct{}{}, nothing: &plan.Rows{}}
}

// Update brings State up to date with w, which is always the same world, and returns how many units it redid.
func (m *Memo) Update(w *world.World) int {
	if !m.started {
		m.started = true
		w.FollowChanges(m.markReaders)
		m.markAll(w)
	}
	dirty := m.dirty
	m.dirty = map[unit]struct{}{}
	for u := range dirty {
		m.recompileUnit(u, w)
	}
	return len(dirty)
}

// markReaders marks the units that read an entry, and those of its own object.
func (m *Memo) markReaders(e world.Entry) {
	maps.Copy(m.dirty, m.readers[e])
	for i, f := range m.features {
		if f.Per() == e.Kind {
			m.dirty[unit{i, e.Key}] = struct{}{}
		}
	}
}

func (m *Memo) markAll(w *world.World) {
	for i, f := range m.features {
		for _, k := range w.Keys(f.Per()) {
			m.dirty[unit{i, k}] = struct{}{}
		}
	}
}

// recompileUnit compiles u, and records what it read.
func (m *Memo) recompileUnit(u unit, w *world.World) {
	old, had := m.results[u]
	if !had {
		old.rows = m.nothing
	}
	m.forgetUnit(u, old.reads)
	now := m.compileUnit(u, w)
	m.State.Replace(Owner(w, m.features[u.feature], u.key), old.rows, now.rows)
	if !w.Has(m.features[u.feature].Per(), u.key) {
		return // it compiled to nothing, and is asked again when its object comes back
	}
	m.results[u] = now
	for _, t := range now.reads {
		if m.readers[t] == nil {
			m.readers[t] = map[unit]struct{}{}
		}
		m.readers[t][u] = struct{}{}
	}
}

// compileUnit leaves out of a unit's reads its own object, with which it is redone anyway.
func (m *Memo) compileUnit(u unit, w *world.World) result {
	rows, f := &plan.Rows{}, m.features[u.feature]
	m.reads = m.reads[:0]
	seen := map[world.Entry]struct{}{{Kind: f.Per(), Key: u.key}: {}}
	v := w.Recording(func(t world.Entry) {
		if _, ok := seen[t]; !ok {
			seen[t] = struct{}{}
			m.reads = append(m.reads, t)
		}
	})
	if f.Compile(v, u.key, rows); rows.IsEmpty() {
		rows = m.nothing
	}
	return result{rows, slices.Clone(m.reads)}
}

func (m *Memo) forgetUnit(u unit, reads []world.Entry) {
	for _, t := range reads {
		if delete(m.readers[t], u); len(m.readers[t]) == 0 {
			delete(m.readers, t)
		}
	}
	delete(m.results, u)
}

// Size is the number of units remembered.
func (m *Memo) Size() int { return len(m.results) }
