package nft

import (
	"maps"
	"slices"

	"github.com/egret-net/egret/internal/plan"
)

// former is what a table may hold of the rows of a part that a plan does not have any more.
type former struct {
	objects []object
	rules   []plan.NFTRule
	elems   []plan.NFTElem // as nft spells them
}

// formerOf looks at the rows of a known part.
func (t *table) formerOf(s *plan.State, p part) *former {
	f := &former{}
	for _, k := range p.chains.Keys {
		if k.Family == t.family {
			f.objects = append(f.objects, object{"chain", k.Name})
		}
	}
	for _, k := range p.rules.Keys {
		if _, wanted := s.NFTRules[k]; !wanted && k.Chain.Family == t.family {
			f.rules = append(f.rules, k)
		}
	}
	if !t.hasSets() {
		return f
	}
	for _, k := range p.sets.Keys {
		f.objects = append(f.objects, object{"set", k.Name}, object{"map", k.Name})
	}
	for _, k := range p.elems.Keys { // another key may have come for the element of one that went
		t.aliases.noteKey(k, spelledElem(k))
	}
	for _, k := range p.elems.Keys {
		if at := spelledElem(k); !t.aliases.isWanted(s, at) {
			f.elems = append(f.elems, at)
		}
	}
	return f
}

// formerObjects are those that h holds and nobody wants, in an order in which they can be removed.
func (w *wanted) formerObjects(h *held) []object {
	candidates := slices.Collect(maps.Keys(h.objects))
	if w.former != nil {
		candidates = w.former.objects
	}
	var out []object
	for _, o := range candidates {
		_, is := h.objects[o]
		if _, stays := w.objects[o]; is && !stays {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b object) int { return compareObjects(b, a) })
	return out
}

// isNothing says that nothing is wanted of a table.
func (w *wanted) isNothing(h *held) bool {
	if w.former == nil {
		return len(w.objects) == 0
	}
	return len(w.formerObjects(h)) == len(h.objects)
}

// formerRules are those that h holds and nobody wants, by chain.
func (w *wanted) formerRules(h *held) map[string][]heldRule {
	out := map[string][]heldRule{}
	if w.former != nil {
		for _, k := range w.former.rules {
			have := h.rules[k.Chain.Name]
			if i := slices.IndexFunc(have, func(r heldRule) bool { return r.name == k.Name }); i >= 0 {
				out[k.Chain.Name] = append(out[k.Chain.Name], have[i])
			}
		}
		return out
	}
	for chain, rules := range h.rules {
		out[chain] = unwantedRules(rules, w.rules[chain])
	}
	return out
}

func unwantedRules(have []heldRule, want []wantedRule) []heldRule {
	keep := map[string]bool{}
	for _, w := range want {
		keep[w.name] = true
	}
	return slices.DeleteFunc(slices.Clone(have), func(r heldRule) bool { return keep[r.name] })
}

// formerElems are those that sets of h hold and nobody wants, with their values, but for sets that nobody wants.
func (w *wanted) formerElems(h *held) map[object]map[string]string {
	out := map[object]map[string]string{}
	if w.former != nil {
		for _, k := range w.former.elems {
			w.addFormer(out, h, k)
		}
		return out
	}
	for o := range w.objects {
		if _, is := h.objects[o]; is && len(h.elems[o.name]) > 0 {
			out[o] = maps.Clone(h.elems[o.name])
		}
	}
	for _, e := range w.elems {
		delete(out[e.set], e.key)
	}
	return out
}

func (w *wanted) addFormer(to map[object]map[string]string, h *held, k plan.NFTElem) {
	value, is := h.elems[k.Set][k.Key]
	for _, o := range []object{{"set", k.Set}, {"map", k.Set}} {
		if _, stays := w.objects[o]; !is || !stays {
			continue
		}
		if to[o] == nil {
			to[o] = map[string]string{}
		}
		to[o][k.Key] = value
	}
}
