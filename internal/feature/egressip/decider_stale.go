package egressip

import (
	"maps"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// staleness is what has changed since the last decision about each EgressIP.
type staleness struct {
	objects map[string]struct{} // EgressIPs that are to be decided about anew
	nodes   map[string]struct{} // that are to be looked at again
	placing bool                // places are to be found anew
	readers *world.Readers[string]
	timed   map[string]time.Time // when an EgressIP is to be decided about though nothing changes
	waiting map[string]struct{}  // EgressIPs that wait until others are written
	now     time.Time            // of the last decision
}

func newStaleness() *staleness {
	return &staleness{objects: map[string]struct{}{}, nodes: map[string]struct{}{}, placing: true,
		readers: world.NewReaders[string](), timed: map[string]time.Time{}, waiting: map[string]struct{}{}}
}

// everything is stale.
func (s *staleness) everything(w *world.World) {
	for _, name := range w.EgressIPs() {
		s.objects[name] = struct{}{}
	}
	for _, name := range w.Nodes() {
		s.nodes[name] = struct{}{}
	}
	s.placing = true
}

// touch notes what follows from a change: who has read it, and what else was made of it.
func (s *staleness) touch(t world.Touch) {
	maps.Copy(s.objects, s.readers.Of(t))
	switch t.Kind {
	case world.KindEgressIP:
		s.objects[t.Key], s.placing = struct{}{}, true
	case world.KindHolders:
		s.objects[t.Key] = struct{}{}
	case world.KindNode, world.KindReach, world.KindFaults:
		s.nodes[t.Key] = struct{}{}
	case world.KindService:
		s.placing = true
	}
}

// take notes that EgressIPs of which there is news are to be decided about anew. It is no news any more then.
func (s *staleness) take(news map[string]struct{}) {
	maps.Copy(s.objects, news)
	clear(news)
}

// pass lets time pass. With a clock that was set back, nothing is as it was.
func (s *staleness) pass(w *world.World, now time.Time) {
	if now.Before(s.now) {
		s.everything(w)
	}
	s.now = now
	for name, at := range s.timed {
		if !now.Before(at) {
			s.objects[name] = struct{}{}
		}
	}
}

// seen notes that the API shows an EgressIP anew: what it says itself, and which nodes it gives addresses to.
func (s *staleness) seen(e *world.EgressIP, run *assigner) {
	s.objects[e.Name] = struct{}{}
	if run != nil && run.byName[e.Name] != nil && !slices.Equal(run.byName[e.Name].shown, e.Items) {
		s.placing = true
	}
}

// note keeps of a decision when it is to be made again, and whether it waits for others.
func (s *staleness) note(name string, d Decision) {
	if s.timed[name] = d.Again; d.Again.IsZero() {
		delete(s.timed, name)
	}
	if s.waiting[name] = struct{}{}; len(d.WaitsFor) == 0 {
		delete(s.waiting, name)
	}
}

// forget forgets an EgressIP that is gone.
func (s *staleness) forget(name string) {
	s.readers.Forget(name)
	delete(s.timed, name)
	delete(s.waiting, name)
}

// soonest is when the first EgressIP is to be decided about though nothing changes; zero: none is.
func (s *staleness) soonest() (again time.Time) {
	for _, at := range s.timed {
		again = decide.Earlier(again, at)
	}
	return again
}
