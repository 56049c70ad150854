package egressip

import (
	"maps"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// concerned are the EgressIPs that something has changed for, of a decider that decides one condition of each.
type concerned struct {
	decide.Stale
	all bool // something has changed that may concern any, or nothing was decided yet
}

func newConcerned() concerned { return concerned{decide.NewStale(), true} }

// NoteChanged notes which EgressIPs a change concerns.
func (s *concerned) NoteChanged(e world.Entry) {
	if e.Kind == world.KindEgressIP {
		s.Objects[e.Key] = struct{}{}
	}
}

// Seen notes that an EgressIP may say something else of itself.
func (s *concerned) Seen(_ decide.View, object world.Entry) time.Time {
	if object.Kind == world.KindEgressIP {
		s.Objects[object.Key] = struct{}{}
	}
	return time.Time{}
}

// takeConcerned are the EgressIPs that are concerned, by name. From here on none is. Gone receives those that are gone.
func (s *concerned) takeConcerned(v decide.View, gone func(name string)) (those []*world.EgressIP) {
	if !s.all && len(s.Objects) == 0 {
		return nil
	}
	if s.all {
		for _, name := range v.EgressIPs() {
			s.Objects[name] = struct{}{}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Objects)) {
		if e := v.EgressIP(name); e != nil {
			those = append(those, e)
		} else {
			gone(name)
		}
	}
	s.all = false
	clear(s.Objects)
	return those
}

// desiredCondition is an EgressIP with its condition. As long as it does not say so, it is decided about again.
func (s *concerned) desiredCondition(v decide.View, e *world.EgressIP, c world.Condition,
	events []decide.Event) decide.Desired {
	out := ofEgressIP(e, decide.Dated(e.Conditions, e.Generation, v.Now, c), events)
	if !showsConditions(e, out.Decision.Conditions) {
		s.Objects[e.Name] = struct{}{}
	}
	return out
}
