package decide

import (
	"maps"
	"time"

	"github.com/egret-net/egret/internal/world"
)

// Stale is which objects of a kind, by key, are to be decided about anew: because what their last decision has read was
// touched, or a time that it named has come.
type Stale struct {
	Objects map[string]struct{}
	Readers *world.Readers[string]
	timed   map[string]time.Time // when an object is to be decided about though nothing changes
	now     time.Time            // of the last decision
}

// NewStale has decided nothing yet.
func NewStale() Stale {
	return Stale{Objects: map[string]struct{}{}, Readers: world.NewReaders[string](), timed: map[string]time.Time{}}
}

// Touch notes who has read what has changed.
func (s *Stale) Touch(t world.Touch) { maps.Copy(s.Objects, s.Readers.Of(t)) }

// Take notes that objects of which there is news are to be decided about anew. It is no news any more then.
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

// Note keeps of a decision when it is to be made again; zero: when something changes.
func (s *Stale) Note(key string, again time.Time) {
	if s.timed[key] = again; again.IsZero() {
		delete(s.timed, key)
	}
}

// Forget forgets an object that is gone.
func (s *Stale) Forget(key string) {
	s.Readers.Forget(key)
	delete(s.timed, key)
}

// Soonest is when the first object is to be decided about though nothing changes; zero: none is.
func (s *Stale) Soonest() (again time.Time) {
	for _, at := range s.timed {
		again = Earlier(again, at)
	}
	return again
}
