package nft

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// makeRoomSteps delete, in the transaction that adds elements to an interval set, unwanted ones that overlap them: the
// kernel refuses the new ones otherwise. Of two prefixes that overlap one contains the other: in order of addresses,
// what an element overlaps among those before it are those that contain it.
func makeRoomSteps(set object, added []wantedElem, unwanted map[string]string) []step {
	if len(unwanted) == 0 {
		return nil
	}
	var steps []step
	var around []interval
	for _, e := range intervals(added, unwanted) {
		around = slices.DeleteFunc(around, func(o interval) bool { return !o.mayOverlap(e) })
		for _, o := range around {
			to, from := e, o
			if e.added == nil {
				to, from = o, e
			}
			value, is := unwanted[from.key]
			if is && to.added != nil && overlap(from.key, to.key) {
				steps = append(steps, deleteElementStep(to.added.owner, to.added.row, set, true, from.key, value))
				delete(unwanted, from.key)
			}
		}
		around = append(around, e)
	}
	return steps
}

// interval is an element of an interval set, by the first part of its key.
type interval struct {
	key   string
	first netip.Prefix // invalid: the first part is no prefix
	added *wantedElem  // nil: it is unwanted
}

// intervals are all elements in order of addresses, of equal ones the larger prefix first.
func intervals(added []wantedElem, unwanted map[string]string) []interval {
	out := make([]interval, 0, len(added)+len(unwanted))
	for i := range added {
		out = append(out, interval{added[i].key, firstPrefix(added[i].key), &added[i]})
	}
	for key := range unwanted {
		out = append(out, interval{key, firstPrefix(key), nil})
	}
	slices.SortFunc(out, func(a, b interval) int {
		return cmp.Or(a.first.Addr().Compare(b.first.Addr()), cmp.Compare(a.first.Bits(), b.first.Bits()),
			strings.Compare(a.key, b.key))
	})
	return out
}

func firstPrefix(key string) netip.Prefix {
	first, _, _ := strings.Cut(key, " . ")
	p, _ := prefix(first)
	return p
}

// mayOverlap says that the first parts of both do, as far as they are prefixes.
func (i interval) mayOverlap(o interval) bool {
	if !i.first.IsValid() || !o.first.IsValid() {
		return i.first.IsValid() == o.first.IsValid()
	}
	return i.first.Overlaps(o.first)
}
