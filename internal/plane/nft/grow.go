package nft

import (
	"cmp"
	"maps"
	"slices"

	"sigs.k8s.io/knftables"

	"github.com/egret-net/egret/internal/plan"
)

// step is one operation of a transaction, with its purpose, its text, and the content of the table afterwards.
type step struct {
	owner    plan.Owner
	row      string
	write    func(*knftables.Transaction)
	note     func(*held)
	byHandle bool // it names a rule by the kernel's handle
	element  elementChange
}

// batch is what one transaction does: steps in an order in which nothing names what is not there yet.
type batch struct {
	// rebuild deletes the table and creates it again in the same transaction. It is how a chain or set gets another
	// definition, which nftables does not allow while rules name it.
	rebuild bool
	steps   []step
}

// ofOwners is the batch of the owners that keep says yes to.
func (b batch) ofOwners(keep func(plan.Owner) bool) batch {
	b.steps = slices.DeleteFunc(slices.Clone(b.steps), func(s step) bool { return !keep(s.owner) })
	return b
}

func (b batch) stepOwners() []plan.Owner {
	owners := map[plan.Owner]bool{}
	for _, s := range b.steps {
		owners[s.owner] = true
	}
	return slices.SortedFunc(maps.Keys(owners), plan.Owner.Compare)
}

// byHandle says that the batch needs the handles of rules.
func (b batch) byHandle() bool {
	return slices.ContainsFunc(b.steps, func(s step) bool { return s.byHandle })
}

func (b batch) isEmpty() bool { return !b.rebuild && len(b.steps) == 0 }

// growBatch adds and changes what w has and h has not. Chains and sets come first, then elements, then the rules that
// name them. If it loses elements, those go of which plan.NFTSet.LosesFirst.
func growBatch(w *wanted, h *held, loses bool) batch {
	b := batch{rebuild: isRedefined(w, h)}
	if b.rebuild {
		h = newHeld()
	}
	for _, o := range slices.SortedFunc(maps.Keys(w.objects), compareObjects) {
		if _, ok := h.objects[o]; !ok {
			b.steps = append(b.steps, objectStep(o, w.objects[o]))
		}
	}
	former := w.formerElems(h)
	if loses {
		b.steps = append(b.steps, lossSteps(w, former, h)...)
	}
	b.steps = append(b.steps, elementSteps(w, former, h)...)
	for _, chain := range slices.Sorted(maps.Keys(w.rules)) {
		b.steps = append(b.steps, ruleSteps(chain, w.rules[chain], h.rules[chain])...)
	}
	return b
}

func isRedefined(w *wanted, h *held) bool {
	for o, want := range w.objects {
		if have, ok := h.objects[o]; ok && have != want.record {
			return true
		}
	}
	return false
}

func compareObjects(a, b object) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
}

func objectStep(o object, want wantedObject) step {
	return step{owner: want.owner, row: want.row,
		write: func(tx *knftables.Transaction) {
			tx.Add(want.add)
			tx.Add(&knftables.Element{Set: recordSet, Key: []string{want.record}, Comment: knftables.PtrTo(o.String())})
		},
		note: func(h *held) {
			h.objects[o] = want.record
			if o.kind != "chain" {
				h.elems[o.name] = map[string]string{}
			}
		}}
}

// lossSteps delete unwanted elements of sets that lose elements first, and take them out of former.
func lossSteps(w *wanted, former map[object]map[string]string, h *held) (steps []step) {
	for o, elems := range former {
		if o.losesFirst(true) && !h.unreadable[o.name] { // else it is flushed
			steps = append(steps, deletionSteps(o, w.objects[o].interval, elems, h)...)
			delete(former, o)
		}
	}
	for _, o := range w.formerObjects(h) {
		if o.losesFirst(false) && (len(h.elems[o.name]) > 0 || h.unreadable[o.name]) {
			steps = append(steps, flushStep(wantedObject{row: "nft " + o.String()}, o))
		}
	}
	return steps
}

// elementSteps only touch elements that differ, and former ones whose place is needed.
func elementSteps(w *wanted, former map[object]map[string]string, h *held) []step {
	var steps []step
	added := map[object][]wantedElem{}
	for _, e := range w.elems {
		have, ok := h.elems[e.set.name][e.key]
		ok = ok && !h.unreadable[e.set.name]
		if ok && have == e.value {
			continue
		}
		if ok {
			steps = append(steps, deleteElementStep(e.owner, e.row, e.set, w.objects[e.set].interval, e.key, have))
		}
		added[e.set] = append(added[e.set], e)
	}
	for o, want := range w.objects {
		if o.kind != "chain" && h.unreadable[o.name] {
			steps = append(steps, flushStep(want, o))
		}
	}
	for _, set := range slices.SortedFunc(maps.Keys(added), compareObjects) {
		if w.objects[set].interval && !h.unreadable[set.name] {
			steps = append(steps, roomSteps(set, added[set], former[set], h)...)
		}
		for _, e := range added[set] {
			steps = append(steps, addElementStep(e, w.objects[set].interval))
		}
	}
	return steps
}

func addElementStep(e wantedElem, interval bool) step {
	return step{owner: e.owner, row: e.row, element: addressOf(e.set, interval, e.key, false),
		write: func(tx *knftables.Transaction) { tx.Add(elementOf(e.set, e.key, e.value)) },
		note:  func(h *held) { h.elems[e.set.name][e.key] = e.value }}
}

func deleteElementStep(owner plan.Owner, row string, set object, interval bool, key, value string) step {
	return step{owner: owner, row: row, element: addressOf(set, interval, key, true),
		write: func(tx *knftables.Transaction) { tx.Delete(elementOf(set, key, value)) },
		note:  func(h *held) { delete(h.elems[set.name], key) }}
}

func flushStep(w wantedObject, set object) step {
	return step{owner: w.owner, row: w.row,
		write: func(tx *knftables.Transaction) { tx.Flush(nameOnly(set)) },
		note: func(h *held) {
			delete(h.unreadable, set.name)
			h.elems[set.name] = map[string]string{}
		}}
}

func elementOf(set object, key, value string) *knftables.Element {
	if set.kind == "map" {
		return &knftables.Element{Map: set.name, Key: splitParts(key), Value: splitParts(value)}
	}
	return &knftables.Element{Set: set.name, Key: splitParts(key)}
}

// nameOnly is an object as it is deleted or flushed.
func nameOnly(o object) knftables.Object {
	switch o.kind {
	case "chain":
		return &knftables.Chain{Name: o.name}
	case "map":
		return &knftables.Map{Name: o.name}
	}
	return &knftables.Set{Name: o.name}
}

// ruleSteps insert each missing rule before the next one by name that is there, and then replace those whose text
// changed: no insertion names a handle that may have gone with a replacement.
func ruleSteps(chain string, want []wantedRule, have []heldRule) []step {
	byName := map[string]heldRule{}
	for _, h := range have {
		byName[h.name] = h
	}
	var inserts, replaces []step
	for _, w := range want {
		rule := &knftables.Rule{Chain: chain, Rule: w.text, Comment: knftables.PtrTo(ruleComment(w.name, w.text))}
		switch h, ok := byName[w.name]; {
		case !ok:
			inserts = append(inserts, insertStep(chain, w, rule, have))
		case h.hash != w.hash:
			rule.Handle = knftables.PtrTo(h.handle)
			replaces = append(replaces, ruleStep(chain, w, true, func(tx *knftables.Transaction) { tx.Replace(rule) }))
		}
	}
	return append(inserts, replaces...)
}

func insertStep(chain string, w wantedRule, rule *knftables.Rule, have []heldRule) step {
	next := slices.IndexFunc(have, func(h heldRule) bool { return h.name > w.name })
	if next < 0 {
		return ruleStep(chain, w, false, func(tx *knftables.Transaction) { tx.Add(rule) })
	}
	rule.Handle = knftables.PtrTo(have[next].handle)
	return ruleStep(chain, w, true, func(tx *knftables.Transaction) { tx.Insert(rule) })
}

func ruleStep(chain string, w wantedRule, byHandle bool, write func(*knftables.Transaction)) step {
	return step{owner: w.owner, row: w.row, write: write, byHandle: byHandle, note: func(h *held) {
		rules := slices.DeleteFunc(slices.Clone(h.rules[chain]), func(r heldRule) bool { return r.name == w.name })
		at := slices.IndexFunc(rules, func(r heldRule) bool { return r.name > w.name })
		if at < 0 {
			at = len(rules)
		}
		h.rules[chain] = slices.Insert(rules, at, heldRule{name: w.name, hash: w.hash})
		h.stale = true
	}}
}
