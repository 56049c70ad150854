package compile

import (
	"strings"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Of are the rows that concern one object, "KIND/NAME" as "egressip/prod" or "pod/shop/web-0": its own, and those that
// others claim on its behalf.
func (m *Memo) Of(object string) *plan.State {
	s := plan.New()
	for u, r := range m.results {
		owner := Owner(m.features[u.feature], u.key)
		if Concerns(owner, object) {
			s.Replace(owner, &plan.Rows{}, r.rows)
			continue
		}
		for other, rows := range r.rows.OnBehalf() {
			if Concerns(other, object) {
				s.Replace(owner, &plan.Rows{}, rows)
			}
		}
	}
	return s
}

// Concerns says whether an owner of rows is a feature for one object: its name is the kind, or begins or ends with
// it, as "egressip-pod/shop/web-0" does for "pod/shop/web-0".
func Concerns(owner, object string) bool {
	feature, key, _ := strings.Cut(owner, "/")
	kind, name, _ := strings.Cut(object, "/")
	of := feature == kind || strings.HasPrefix(feature, kind+"-") || strings.HasSuffix(feature, "-"+kind)
	return of && name == key
}

// Some is Full of those objects alone that include says yes to; of kinds without objects there is one, with key "".
func Some(w *world.World, features []Feature, include func(k world.Kind, key string) bool) *plan.State {
	s := plan.New()
	for _, f := range features {
		for _, k := range w.Keys(f.Per()) {
			if include(f.Per(), k) {
				var rows plan.Rows
				f.Compile(&w.View, k, &rows)
				s.Replace(Owner(f, k), &plan.Rows{}, &rows)
			}
		}
	}
	return s
}
