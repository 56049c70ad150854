package compile

import (
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Of are the rows that concern one object: its own, and those that others claim on its behalf.
func (m *Memo) Of(w *world.World, object ref.Object) *plan.State {
	s := plan.New()
	for u, r := range m.results {
		owner := Owner(w, m.features[u.feature], u.key)
		if owner.Object == object {
			s.Replace(owner, &plan.Rows{}, r.rows)
			continue
		}
		for other, rows := range r.rows.OnBehalf() {
			if other.Object == object {
				s.Replace(owner, &plan.Rows{}, rows)
			}
		}
	}
	return s
}

// Some is Full of those objects alone that include says yes to; of kinds without objects there is one, with key "".
func Some(w *world.World, features []Feature, include func(k world.Kind, key string) bool) *plan.State {
	s := plan.New()
	for _, f := range features {
		for _, k := range w.Keys(f.Per()) {
			if include(f.Per(), k) {
				var rows plan.Rows
				f.Compile(&w.View, k, &rows)
				s.Replace(Owner(w, f, k), &plan.Rows{}, &rows)
			}
		}
	}
	return s
}
