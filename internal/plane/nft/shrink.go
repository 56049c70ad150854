package nft

import (
	"maps"
	"slices"

	"sigs.k8s.io/knftables"
)

// shrinkBatch removes what h has and w has not: rules, then the elements, sets and chains that nothing names any more.
// keepObjects leaves sets and chains. An unwanted set's elements go with it.
func shrinkBatch(w *wanted, h *held, keepObjects bool) batch {
	var b batch
	for _, chain := range slices.Sorted(maps.Keys(h.rules)) {
		b.steps = append(b.steps, dropRuleSteps(chain, w.rules[chain], h.rules[chain])...)
	}
	b.steps = append(b.steps, dropElementSteps(w, h)...)
	for _, o := range slices.Backward(slices.SortedFunc(maps.Keys(h.objects), compareObjects)) {
		if _, ok := w.objects[o]; !ok && !keepObjects {
			b.steps = append(b.steps, dropObjectStep(o, h.objects[o]))
		}
	}
	return b
}

func dropRuleSteps(chain string, want []wantedRule, have []heldRule) []step {
	keep := map[string]bool{}
	for _, w := range want {
		keep[w.name] = true
	}
	var steps []step
	for _, r := range have {
		if keep[r.name] {
			continue
		}
		steps = append(steps, step{row: "nft rule " + chain + " [" + r.label() + "]",
			write: func(tx *knftables.Transaction) {
				tx.Delete(&knftables.Rule{Chain: chain, Handle: knftables.PtrTo(r.handle)})
			},
			note: func(h *held) {
				h.rules[chain] = slices.DeleteFunc(slices.Clone(h.rules[chain]), func(x heldRule) bool { return x == r })
			}})
	}
	return steps
}

func dropElementSteps(w *wanted, h *held) []step {
	keep := map[string]map[string]bool{}
	for o := range w.objects {
		keep[o.name] = map[string]bool{}
	}
	for _, e := range w.elems {
		keep[e.set.name][e.key] = true
	}
	var steps []step
	for o := range h.objects {
		for key, value := range h.elems[o.name] {
			if keys, ok := keep[o.name]; ok && !keys[key] {
				steps = append(steps, deleteElementStep("", "nft elem "+o.name+" "+key, o, key, value))
			}
		}
	}
	return steps
}

func dropObjectStep(o object, record string) step {
	return step{row: "nft " + o.String(),
		write: func(tx *knftables.Transaction) {
			if o.kind == "chain" {
				tx.Flush(named(o))
			}
			tx.Delete(named(o))
			if record != "" {
				tx.Delete(&knftables.Element{Set: recordSet, Key: []string{record}})
			}
		},
		note: func(h *held) {
			delete(h.objects, o)
			delete(h.elems, o.name)
			delete(h.rules, o.name)
		}}
}
