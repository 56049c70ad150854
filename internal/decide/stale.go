package decide

import (
	"maps"
	"time"

	"github.com/egret-net/egret/internal/world"
)

// Stale is the set of objects of a kind whose decision must be recomputed, because a dependency changed or a deadline
// passed.
type Stale struct {
	Objects map[string]struct{}
	readers world.Readers[string]
	timed   map[string]time.Time // the deadline of an object's decision
	now     time.Time            // of the last decision
}

// NewStale has decided nothing yet.
func NewStale() Stale {
	objects := map[string]struct{}{}
	return Stale{Objects: objects, readers: world.NewReaders(objects), timed: map[string]time.Time{}}
}

// Reading returns a view for the decision about an object, which becomes stale when something that it reads changes.
func (s *Stale) Reading(w *world.World, key string) *world.View {
	return s.readers.ReaderOf(key).Reading(w)
}

// Take adds the objects whose dependencies changed. It is no news any more then.
func (s *Stale) Take(news map[string]struct{}) {
	maps.Copy(s.Objects, news)
	clear(news)
}

// Pass lets time pass. It says whether the clock was set back: then nothing is as it was.
func (s *Stale) Pass(now time.Time) (back bool) {
	back, s.now = now.Before(s.now), now
	for key, at := range s.timed {
		if !now.Before(at) {
			s.Objects[key] = struct{}{}
		}
	}
	return back
}

// Note keeps the deadline of a decision; zero: it has no deadline.
func (s *Stale) Note(key string, again time.Time) {
	if s.timed[key] = again; again.IsZero() {
		delete(s.timed, key)
	}
}

// Forget forgets an object that is gone.
func (s *Stale) Forget(key string) {
	s.readers.ForgetUnit(key)
	delete(s.timed, key)
}

// Soonest returns the first deadline of all objects; zero: no object has one.
func (s *Stale) Soonest() (again time.Time) {
	for _, at := range s.timed {
		again = Earlier(again, at)
	}
	return again
}
