package world

// source is what can be read: an entry of a world.
type source struct {
	entry Entry
	one   *Reader              // most have one reader, as a pod has
	more  map[*Reader]struct{} // the others
}

// addReader says whether the Reader is new.
func (s *source) addReader(r *Reader) bool {
	if _, is := s.more[r]; is || s.one == r {
		return false
	}
	switch {
	case s.one == nil:
		s.one = r
	case s.more == nil:
		s.more = map[*Reader]struct{}{r: {}}
	default:
		s.more[r] = struct{}{}
	}
	return true
}

// dropReader says whether that was the last Reader.
func (s *source) dropReader(r *Reader) bool {
	if s.one == r {
		s.one = nil
	} else {
		delete(s.more, r)
	}
	return s.one == nil && len(s.more) == 0
}

func (s *source) tellReaders() {
	if s.one != nil {
		s.one.stale()
	}
	for r := range s.more {
		r.stale()
	}
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
func (r *Reader) Read(w *World, compute func(*View)) { r.ReadBeside(w, Entry{}, compute) }

// ReadBeside is Read, but does not record reads of one entry: the owner follows that itself, and computes again when it
// changes.
func (r *Reader) ReadBeside(w *World, followed Entry, compute func(*View)) {
	v := r.Reading(w)
	v.followed = followed
	compute(v)
	v.reader = nil
	v.over = true
}

// ForgetReads forgets what was read.
func (r *Reader) ForgetReads() {
	for _, s := range r.reads {
		if s.dropReader(r) && r.in.sources[s.entry] == s { // no value of a Derived
			delete(r.in.sources, s.entry)
		}
	}
	r.reads = r.reads[:0]
}

// noteRead records that a Reader reads an entry.
func (r *Reader) noteRead(e Entry) {
	s := r.in.sources[e]
	if s == nil {
		s = &source{entry: e}
		r.in.sources[e] = s
	}
	r.noteSource(s)
}

func (r *Reader) noteSource(s *source) {
	if s.addReader(r) {
		r.reads = append(r.reads, s)
	}
}

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

// FollowChanges calls changed with each entry that changes from now on. The world may be in the middle of the change:
// changed only notes the entry.
func (w *World) FollowChanges(changed func(Entry)) { w.followers = append(w.followers, changed) }

// noteChanged tells the entry's Readers, and the followers, that an entry changes.
func (w *tables) noteChanged(k Kind, key string) {
	if s := w.sources[Entry{k, key}]; s != nil {
		s.tellReaders()
	}
	for _, changed := range w.followers {
		changed(Entry{k, key})
	}
}

// setFact replaces a fact about something, where it is another one, and notes that an entry changes. The zero value is
// not kept.
func setFact[K, V comparable](w *World, kind Kind, entry string, facts map[K]V, about K, now V) {
	var none V
	if facts[about] == now {
		return
	}
	if facts[about] = now; now == none {
		delete(facts, about)
	}
	w.noteChanged(kind, entry)
}
