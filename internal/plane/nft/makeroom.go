package nft

import (
	"cmp"
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// makeRoomSteps delete, in the transaction that adds elements to an interval set, unwanted ones that overlap them: the
// kernel refuses the new ones otherwise. Elements that differ in a part of their keys that is a single value in all of
// them do not overlap. Of the rest each is compared with those alone that it meets in the order of one part: a Service
// has tens of thousands of elements, whoever may write it decides how many, and few overlap.
func makeRoomSteps(set object, added []wantedElem, unwanted map[string]string) []step {
	if len(unwanted) == 0 {
		return nil
	}
	var steps []step
	groups := groupByFixedParts(sortedIntervals(added, unwanted))
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		var around []interval
		for _, e := range groups[name] {
			around = slices.DeleteFunc(around, func(o interval) bool { return o.last.Less(e.first) })
			for _, o := range around {
				to, from := e, o
				if e.added == nil {
					to, from = o, e
				}
				value, is := unwanted[from.key]
				if is && to.added != nil && keysOverlap(from.key, to.key) {
					steps = append(steps, deleteElementStep(to.added.owner, to.added.row, set, true, from.key, value))
					delete(unwanted, from.key)
				}
			}
			around = append(around, e)
		}
	}
	return steps
}

// interval is an element of an interval set, by the first part of its key that is an interval in any of them.
type interval struct {
	key         string
	parts       []string
	first, last netip.Addr  // of numbers: as if they were addresses
	added       *wantedElem // nil: it is unwanted
}

func sortedIntervals(added []wantedElem, unwanted map[string]string) []interval {
	out := make([]interval, 0, len(added)+len(unwanted))
	for i := range added {
		out = append(out, interval{key: added[i].key, parts: strings.Split(added[i].key, " . "), added: &added[i]})
	}
	for key := range unwanted {
		out = append(out, interval{key: key, parts: strings.Split(key, " . ")})
	}
	return out
}

// groupByFixedParts groups elements that have all parts in common but those that are intervals in any of them, each in
// order.
func groupByFixedParts(all []interval) map[string][]interval {
	wide := map[int]bool{}
	for _, e := range all {
		for i, part := range e.parts {
			wide[i] = wide[i] || strings.ContainsAny(part, "/-")
		}
	}
	groups := map[string][]interval{}
	for _, e := range all {
		var single []string
		by := -1
		for i, part := range e.parts {
			if !wide[i] {
				single = append(single, part)
			} else if by < 0 {
				by = i
			}
		}
		e.first, e.last = rangeEnds(e.parts[max(by, 0)])
		name := strings.Join(single, " . ")
		groups[name] = append(groups[name], e)
	}
	for _, g := range groups {
		slices.SortFunc(g, func(a, b interval) int {
			return cmp.Or(a.first.Compare(b.first), strings.Compare(a.key, b.key))
		})
	}
	return groups
}

// rangeEnds are the first and the last of a part of a key, zero of what is neither address nor number.
func rangeEnds(part string) (first, last netip.Addr) {
	if p, ok := parsePrefix(part); ok {
		b := p.Masked().Addr().AsSlice()
		for i := p.Bits(); i < 8*len(b); i++ {
			b[i/8] |= 1 << (7 - i%8)
		}
		last, _ = netip.AddrFromSlice(b)
		return p.Masked().Addr(), last
	}
	if from, to, ok := parseRange(part); ok {
		return addrOfNumber(from), addrOfNumber(to)
	}
	return first, last
}

func addrOfNumber(n uint64) netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[8:], n)
	return netip.AddrFrom16(b)
}
