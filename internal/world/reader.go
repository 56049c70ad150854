package world

// source is what can be read: an entry of a world.
type source struct {
	entry   Entry
	readers map[*Reader]struct{}
}

// A Reader remembers what something was computed from.
type Reader struct {
	stale func()
	in    *tables
	reads []*source
}

// NewReader returns a Reader that has read nothing. It calls stale when something that it has read changes. The world
// may be in the middle of the change: stale only notes it.
func NewReader(stale func()) *Reader { return &Reader{stale: stale} }

// Reading returns a view that records what is read through it, and forgets what was read before.
func (r *Reader) Reading(w *World) *View {
	r.ForgetReads()
	r.in = w.tables
	v := w.View
	v.reader = r
	return &v
}

// Read calls compute with a view as Reading returns it. The view panics if it is used afterwards.
func (r *Reader) Read(w *World, compute func(*View)) {
	v := r.Reading(w)
	compute(v)
	v.reader = nil
	v.over = true
}

// ForgetReads forgets what was read.
func (r *Reader) ForgetReads() {
	for _, s := range r.reads {
		if delete(s.readers, r); len(s.readers) == 0 && r.in.sources[s.entry] == s {
			delete(r.in.sources, s.entry)
		}
	}
	r.reads = r.reads[:0]
}

// noteRead records that a Reader reads an entry.
func (r *Reader) noteRead(e Entry) {
	s := r.in.sources[e]
	if s == nil {
		s = &source{entry: e, readers: map[*Reader]struct{}{}}
		r.in.sources[e] = s
	}
	if _, is := s.readers[r]; !is {
		s.readers[r] = struct{}{}
		r.reads = append(r.reads, s)
	}
}

// ForgetReaders forgets all Readers, whose owners are gone.
func (w *World) ForgetReaders() { clear(w.sources) }

// Readers has a Reader for each of several units.
type Readers[U comparable] struct {
	stale map[U]struct{}
	of    map[U]*Reader
}

// NewReaders returns Readers that have read nothing, and that put each unit into stale when something that it has read
// changes.
func NewReaders[U comparable](stale map[U]struct{}) Readers[U] {
	return Readers[U]{stale, map[U]*Reader{}}
}

// ReaderOf returns a unit's Reader.
func (r Readers[U]) ReaderOf(u U) *Reader {
	if r.of[u] == nil {
		r.of[u] = NewReader(func() { r.stale[u] = struct{}{} })
	}
	return r.of[u]
}

// ForgetUnit forgets a unit.
func (r Readers[U]) ForgetUnit(u U) {
	if one := r.of[u]; one != nil {
		one.ForgetReads()
		delete(r.of, u)
	}
}
