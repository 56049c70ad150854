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
			s.Replace(owner, &plan.Rows{}, r)
			continue
		}
		for other, rows := range r.OnBehalf() {
			if other.Object == object {
				s.Replace(owner, &plan.Rows{}, rows)
			}
		}
	}
	return s
}

// Some is Full of some objects alone: of the kinds in only, those that it lists; they exist.
func Some(w *world.World, features []Feature, only map[world.Kind][]string) *plan.State {
	s := plan.New()
	for _, f := range features {
		keys, some := only[f.Per()]
		if !some {
			keys = w.Keys(f.Per())
		}
		for _, k := range keys {
			var rows plan.Rows
			f.Compile(&w.View, k, &rows)
			s.Replace(Owner(w, f, k), &plan.Rows{}, &rows)
		}
	}
	return s
}
