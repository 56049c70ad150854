package nft

import (
	"maps"
	"slices"

	"sigs.k8s.io/knftables"

	"github.com/egret-net/egret/internal/plan"
)

// manyDeletions of an interval set at once take longer than to write the set again. For each one nft looks through the
// whole set (1.0.6 and 1.1.3: 100 of 9,000 take 1 s, 5,000 of 10,000 more than 10 s), and so it would take longer than
// a call may. To add 10,000 takes 0.1 s.
const manyDeletions = 100

// deletionSteps delete elements that nobody wants.
func deletionSteps(set object, interval bool, elems map[string]string, h *held) []step {
	if interval && len(elems) > manyDeletions {
		kept := subtractMap(h.elems[set.name], elems)
		return []step{rewriteStep(plan.Owner{}, "nft "+set.String(), set, kept)}
	}
	var steps []step
	for key, value := range elems {
		steps = append(steps, deleteElementStep(plan.Owner{}, "nft elem "+set.name+" "+key, set, interval, key, value))
	}
	return steps
}

// roomSteps are makeRoomSteps, or one that does the same in less time. With several owners each takes its own steps
// along: one of them may be left out.
func roomSteps(set object, added []wantedElem, unwanted map[string]string, h *held) []step {
	before := maps.Clone(unwanted)
	steps := makeRoomSteps(set, added, unwanted)
	first := added[0]
	others := slices.ContainsFunc(added, func(e wantedElem) bool { return e.owner != first.owner })
	if len(steps) <= manyDeletions || others {
		return steps
	}
	kept := subtractMap(h.elems[set.name], subtractMap(before, unwanted))
	for _, e := range added { // one with another value has been deleted
		delete(kept, e.key)
	}
	return []step{rewriteStep(first.owner, first.row, set, kept)}
}

// subtractMap is what is in one and not in the other.
func subtractMap(all, others map[string]string) map[string]string {
	out := maps.Clone(all)
	for key := range others {
		delete(out, key)
	}
	return out
}

// rewriteStep leaves these elements in a set, and no others. A transaction is in force as a whole: no packet meets an
// empty set.
func rewriteStep(owner plan.Owner, row string, set object, elems map[string]string) step {
	return step{owner: owner, row: row,
		write: func(tx *knftables.Transaction) {
			tx.Flush(nameOnly(set))
			for _, key := range slices.Sorted(maps.Keys(elems)) {
				tx.Add(elementOf(set, key, elems[key]))
			}
		},
		note: func(h *held) { h.elems[set.name] = elems }}
}
