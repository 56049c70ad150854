package plan

import (
	"iter"
	"slices"
)

// Table holds rows by key. Two owners may claim one key (a reused pod IP, a shared set element): the claim of the
// least owner stands, whatever the order in which the claims came.
type Table[K comparable, V any] map[K][]claim[V]

// claim is a row with who claims it, which all rows share that are claimed together.
type claim[V any] struct {
	by  *claimant
	row V
}

// Put makes owner claim row at k, in place of its former claim.
func (t Table[K, V]) Put(owner Owner, k K, row V) { t.putClaim(&claimant{owner: owner}, k, row) }

func (t Table[K, V]) putClaim(by *claimant, k K, row V) {
	c := t[k]
	i, found := slices.BinarySearchFunc(c, by, compareClaimant)
	if found {
		c = slices.Clone(c)
		c[i].row = row
		t[k] = c
		return
	}
	t[k] = slices.Insert(slices.Clip(c), i, claim[V]{by, row})
}

// Drop withdraws owner's claim to k.
func (t Table[K, V]) Drop(owner Owner, k K) { t.dropClaim(&claimant{owner: owner}, k) }

func (t Table[K, V]) dropClaim(by *claimant, k K) {
	i, found := slices.BinarySearchFunc(t[k], by, compareClaimant)
	switch {
	case !found:
	case len(t[k]) == 1:
		delete(t, k)
	default:
		t[k] = slices.Delete(slices.Clone(t[k]), i, i+1)
	}
}

// Get is the row that stands at k.
func (t Table[K, V]) Get(k K) (row V, ok bool) {
	if c := t[k]; len(c) > 0 {
		return c[0].row, true
	}
	return row, false
}

// Owner is the owner whose claim to k stands, whoever made it on its behalf; zero if nobody claims it.
func (t Table[K, V]) Owner(k K) Owner {
	if c := t[k]; len(c) > 0 {
		return c[0].by.owner
	}
	return Owner{}
}

// Rows yields each key with the row that stands, in no order.
func (t Table[K, V]) Rows() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for k, c := range t {
			if !yield(k, c[0].row) {
				return
			}
		}
	}
}

func compareClaimant[V any](c claim[V], by *claimant) int { return c.by.compareOwner(by) }

// Delta is the least work that turns what a target has into what it must hold.
type Delta[K comparable, V any] struct {
	Put map[K]V // added or changed
	Del map[K]V // held and no longer wanted, with the row that is there
}

// Diff compares all that a target has with what it must hold.
func Diff[K comparable, V any](have map[K]V, want Table[K, V], equal func(a, b V) bool) Delta[K, V] {
	return DiffOf(Changes[K]{}, have, want, equal)
}

// DiffOf compares what may have changed, when the target was as it must be before.
func DiffOf[K comparable, V any](of Changes[K], have map[K]V, want Table[K, V], equal func(a, b V) bool) Delta[K, V] {
	d := Delta[K, V]{map[K]V{}, map[K]V{}}
	if of.Known {
		for _, k := range of.Keys {
			d.compareKey(k, have, want, equal)
		}
		return d
	}
	for k := range want {
		d.compareKey(k, have, want, equal)
	}
	for k := range have {
		d.compareKey(k, have, want, equal)
	}
	return d
}

func (d Delta[K, V]) compareKey(k K, have map[K]V, want Table[K, V], equal func(a, b V) bool) {
	h, held := have[k]
	w, wanted := want.Get(k)
	switch {
	case wanted && !(held && equal(h, w)):
		d.Put[k] = w
	case held && !wanted:
		d.Del[k] = h
	}
}

// Same is the equality of rows that are plain comparable values.
func Same[V comparable](a, b V) bool { return a == b }
