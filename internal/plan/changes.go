package plan

import (
	"iter"
	"math/bits"
)

// Changes are the keys of a table whose rows may be other than at a former moment, some of them repeatedly, if that
// is known; else any may be.
type Changes[K comparable] struct {
	Keys  []K
	Known bool
}

// Once has each key once.
func (c Changes[K]) Once() Changes[K] {
	seen := make(map[K]bool, len(c.Keys))
	once := make([]K, 0, len(c.Keys))
	for _, k := range c.Keys {
		if !seen[k] {
			seen[k] = true
			once = append(once, k)
		}
	}
	return Changes[K]{Keys: once, Known: c.Known}
}

// RowsOf yields the rows of a table that may have changed, as often as their keys are named; where that is not known,
// all.
func RowsOf[K comparable, V any](c Changes[K], t Table[K, V]) iter.Seq2[K, V] {
	if !c.Known {
		return t.Rows()
	}
	return func(yield func(K, V) bool) {
		for _, k := range c.Keys {
			if row, ok := t.Get(k); ok && !yield(k, row) {
				return
			}
		}
	}
}

// Follower knows up to which moment of its life a target has one table of a State. It is how planes learn what
// changed since they last applied it, so that one pod more does not cost a comparison of ten thousand.
type Follower[K comparable] struct {
	table Tables
	state *State
	mark  int
}

// Follow is a Follower of a table, before its first moment.
func Follow[K comparable](table Tables) Follower[K] { return Follower[K]{table: table} }

// Take returns the rows that the target must apply. Until Done is called the target may hold anything: after a failure
// half way the next Take returns all rows.
func (f *Follower[K]) Take(s *State) Changes[K] {
	known := f.state == s
	f.state = nil
	if !known {
		return Changes[K]{}
	}
	return journalOf[K](s, f.table).changesSince(f.mark)
}

// Done notes that the target has the table as s has it.
func (f *Follower[K]) Done(s *State) { f.state, f.mark = s, journalOf[K](s, f.table).countChanges() }

// Forget makes everything be taken the next time: the target was changed by somebody else.
func (f *Follower[K]) Forget() { f.state = nil }

// Moment is one in the life of a State. The zero Moment is its beginning.
type Moment [mostTables]int

// Now is the present moment.
func (s *State) Now() Moment {
	var m Moment
	for i, j := range s.journals {
		if j != nil {
			m[i] = j.countChanges()
		}
	}
	return m
}

// ChangedSince are the tables that may have changed since a moment.
func (s *State) ChangedSince(before Moment) Tables {
	var changed Tables
	for i, now := range s.Now() {
		if now != before[i] {
			changed |= 1 << i
		}
	}
	return changed
}

// ElemsSince are the elements of sets that may be other than at a moment.
func (s *State) ElemsSince(before Moment) Changes[SetElem] {
	return journalOf[SetElem](s, InSetElems).changesSince(before[bits.TrailingZeros32(uint32(InSetElems))])
}

// journal is what changed in a table, in order.
type journal[K comparable] struct {
	recent  []K
	dropped int // how many older ones are no longer in recent
}

// maxJournal bounds a journal: a follower that is further behind compares whole tables. At twice that the older half
// goes, so that a full journal costs no copy a change.
const maxJournal = 4096

func journalOf[K comparable](s *State, table Tables) *journal[K] {
	i := bits.TrailingZeros32(uint32(table))
	if s.journals[i] == nil {
		s.journals[i] = &journal[K]{}
	}
	return s.journals[i].(*journal[K])
}

func (j *journal[K]) noteChange(k K) {
	if len(j.recent) == 2*maxJournal {
		j.recent = append(make([]K, 0, 2*maxJournal), j.recent[maxJournal:]...)
		j.dropped += maxJournal
	}
	j.recent = append(j.recent, k)
}

// countChanges is how many changes there ever were.
func (j *journal[K]) countChanges() int { return j.dropped + len(j.recent) }

func (j *journal[K]) changesSince(count int) Changes[K] {
	if count < j.dropped {
		return Changes[K]{}
	}
	return Changes[K]{Keys: j.recent[count-j.dropped:], Known: true}
}
