package egressip

import (
	"slices"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// staleness is what has changed since the last decision about each EgressIP.
type staleness struct {
	decide.Stale
	nodes   map[string]struct{} // that must be looked at again
	placing bool                // placements must be recomputed
	waiting map[string]struct{} // EgressIPs that wait until others are written
}

func newStaleness() *staleness {
	return &staleness{Stale: decide.NewStale(), nodes: map[string]struct{}{}, placing: true,
		waiting: map[string]struct{}{}}
}

// markAllStale is stale.
func (s *staleness) markAllStale(w *world.World) {
	for _, name := range w.EgressIPs() {
		s.Objects[name] = struct{}{}
	}
	for _, name := range w.Nodes() {
		s.nodes[name] = struct{}{}
	}
	s.placing = true
}

// markStale notes the consequences of a change for what was computed without a view that records.
func (s *staleness) markStale(t world.Entry) {
	switch t.Kind {
	case world.KindEgressIP:
		s.Objects[t.Key], s.placing = struct{}{}, true
	case world.KindHolders:
		if ref.OfKey(t.Key).Kind == ref.EgressIP {
			s.Objects[t.Key] = struct{}{}
		}
	case world.KindNode, world.KindReach, world.KindFaults:
		s.nodes[t.Key] = struct{}{}
	case world.KindEndpoints:
		s.placing = s.placing || t.Key == world.APIServers
	}
}

// noteShown notes that the API shows a new version of an EgressIP, with its own status and the nodes that it gives
// addresses to.
func (s *staleness) noteShown(e *world.EgressIP, run *assigner) {
	s.Objects[e.Name] = struct{}{}
	if run != nil && run.byName[e.Name] != nil && !slices.Equal(run.byName[e.Name].shown, e.Items) {
		s.placing = true
	}
}

// noteDecision keeps the deadline of a decision, and whether it waits for others.
func (s *staleness) noteDecision(name string, d Decision) {
	s.Note(name, d.Again)
	if s.waiting[name] = struct{}{}; len(d.WaitsFor) == 0 {
		delete(s.waiting, name)
	}
}

// forgetEgressIP forgets an EgressIP that is gone.
func (s *staleness) forgetEgressIP(name string) {
	s.Forget(name)
	delete(s.waiting, name)
}
