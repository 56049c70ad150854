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
	rules := w.formerRules(h)
	for _, chain := range slices.Sorted(maps.Keys(rules)) {
		for _, r := range rules[chain] {
			b.steps = append(b.steps, dropRuleStep(chain, r))
		}
	}
	for o, elems := range w.formerElems(h) {
		b.steps = append(b.steps, deletionSteps(o, w.objects[o].interval, elems, h)...)
	}
	if keepObjects {
		return b
	}
	for _, o := range w.formerObjects(h) {
		b.steps = append(b.steps, dropObjectStep(o, h.objects[o]))
	}
	return b
}

func dropRuleStep(chain string, r heldRule) step {
	return step{row: "nft rule " + chain + " [" + r.errorLabel() + "]", byHandle: true,
		write: func(tx *knftables.Transaction) {
			tx.Delete(&knftables.Rule{Chain: chain, Handle: knftables.PtrTo(r.handle)})
		},
		note: func(h *held) {
			h.rules[chain] = slices.DeleteFunc(slices.Clone(h.rules[chain]), func(x heldRule) bool { return x == r })
		}}
}

func dropObjectStep(o object, record string) step {
	return step{row: "nft " + o.String(),
		write: func(tx *knftables.Transaction) {
			if o.kind == "chain" {
				tx.Flush(nameOnly(o))
			}
			tx.Delete(nameOnly(o))
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
