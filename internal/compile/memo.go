package compile

import (
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
	reads []world.Touch
}

// Memo is Full, remembered: it redoes only the units whose reads were touched.
type Memo struct {
	State    *plan.State
	features []Feature
	results  map[unit]result
	readers  map[world.Touch]map[unit]struct{}
	nothing  *plan.Rows    // what most pods' units compile to
	reads    []world.Touch // of the unit that is being compiled
	started  bool
}

// NewMemo remembers nothing yet: its first Update compiles everything.
func NewMemo(features []Feature) *Memo {
	return &Memo{State: plan.New(), features: features, results: map[unit]result{},
		readers: map[world.Touch]map[unit]struct{}{}, nothing: &plan.Rows{}}
}

// Update brings State up to date with w, given all that was touched since the last Update, and says how many units it
// redid.
func (m *Memo) Update(w *world.World, touched []world.Touch) int {
	dirty := map[unit]struct{}{}
	if !m.started {
		m.started = true
		m.markAll(w, dirty)
	}
	for _, t := range touched {
		for u := range m.readers[t] {
			dirty[u] = struct{}{}
		}
		for i, f := range m.features {
			if f.Per() == t.Kind {
				dirty[unit{i, t.Key}] = struct{}{}
			}
		}
	}
	for u := range dirty {
		m.recompileUnit(u, w)
	}
	return len(dirty)
}

func (m *Memo) markAll(w *world.World, dirty map[unit]struct{}) {
	for i, f := range m.features {
		for _, k := range w.Keys(f.Per()) {
			dirty[unit{i, k}] = struct{}{}
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
	seen := map[world.Touch]struct{}{{Kind: f.Per(), Key: u.key}: {}}
	v := w.Recording(func(t world.Touch) {
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

func (m *Memo) forgetUnit(u unit, reads []world.Touch) {
	for _, t := range reads {
		if delete(m.readers[t], u); len(m.readers[t]) == 0 {
			delete(m.readers, t)
		}
	}
	delete(m.results, u)
}

// Size is the number of units remembered.
func (m *Memo) Size() int { return len(m.results) }
