package world

// Readers records which unit read which key, so that a change recomputes exactly the units that depend on it.
type Readers[U comparable] struct {
	of    map[Entry]map[U]struct{}
	reads map[U][]Entry
}

// NewReaders returns an empty record.
func NewReaders[U comparable]() *Readers[U] {
	return &Readers[U]{of: map[Entry]map[U]struct{}{}, reads: map[U][]Entry{}}
}

// Of returns the units that have read an entry.
func (r *Readers[U]) Of(t Entry) map[U]struct{} { return r.of[t] }

// Reading returns a view that records the keys that u reads through it, and forgets those that u read before.
func (r *Readers[U]) Reading(w *World, u U) *View {
	r.Forget(u)
	return w.Recording(func(t Entry) {
		if r.of[t] == nil {
			r.of[t] = map[U]struct{}{}
		}
		if _, is := r.of[t][u]; !is {
			r.of[t][u] = struct{}{}
			r.reads[u] = append(r.reads[u], t)
		}
	})
}

// Forget forgets what u has read.
func (r *Readers[U]) Forget(u U) {
	for _, t := range r.reads[u] {
		if delete(r.of[t], u); len(r.of[t]) == 0 {
			delete(r.of, t)
		}
	}
	delete(r.reads, u)
}
