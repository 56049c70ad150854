package service

import (
	"maps"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// ConditionRefused of a Service, its reason, and that of world.ConditionServed, as api/v1 documents them.
const (
	ConditionRefused = "egret.k8s.ovn.org/Refused"
	ReasonRefused    = "AddressRefused"
	ReasonServed     = "AddressServed"
)

// Refuser decides about Services: it says what is refused to them, and records what they get. The owner of an address
// needs no decision: all nodes compute it by the same function, from the record.
type Refuser struct {
	decide.IgnoresChanges
	decide.Stale
	begun bool // false: nothing was decided yet
	told  decide.Told
}

// NewRefuser has looked at no Service yet.
func NewRefuser() *Refuser { return &Refuser{Stale: decide.NewStale(), told: decide.Told{}} }

// NoteChanged notes the Services whose decision must be recomputed: those that change, and those whose inputs do.
func (r *Refuser) NoteChanged(e world.Entry) {
	if !r.begun {
		return // the first decision is about all; a controller that does not lead makes no decisions
	}
	if e.Kind == world.KindService {
		r.Objects[e.Key] = struct{}{}
	}
}

// Decide looks at the Services for which something may have changed.
func (r *Refuser) Decide(v decide.View) ([]decide.Desired, time.Time) {
	if !r.begun {
		r.begun = true
		for _, key := range v.Services() {
			r.Objects[key] = struct{}{}
		}
	}
	var out []decide.Desired
	for _, key := range slices.Sorted(maps.Keys(r.Objects)) {
		w := r.Reading(v.World, key)
		s := w.Service(key)
		if s == nil {
			r.Stale.Forget(key)
			delete(r.told, key)
			continue
		}
		refused, served := Refusals(w, s), Served(w, s)
		if len(refused) > 0 || len(served) > 0 || showsCondition(s, ConditionRefused) ||
			showsCondition(s, world.ConditionServed) {
			out = append(out, r.desiredStatus(v, s, refused, served))
		} else {
			delete(r.told, key)
		}
	}
	clear(r.Objects)
	return out, time.Time{}
}

// desiredStatus is a Service with condition Refused as long as something is refused to it, and condition Served as long
// as it gets something.
func (r *Refuser) desiredStatus(v decide.View, s *world.Service, now []decide.Notice,
	served []world.Frontend) decide.Desired {
	d := decide.Desired{Kind: world.KindService, Key: s.Key(), Decision: world.Decision{UID: s.UID}}
	d.Events = r.told.Tell(s.Key(), s.UID, showsCondition(s, ConditionRefused), now)
	for i := range d.Events {
		d.Events[i].Action = "Serve"
	}
	refused := []world.Condition{{Type: ConditionRefused}}
	if len(now) > 0 {
		refused[0].Status, refused[0].Reason, refused[0].Message = "True", ReasonRefused, decide.Messages(now)
		refused = decide.Dated(s.Conditions, 0, v.Now, refused...)
	}
	d.Decision.Conditions = append(refused, servedCondition(v, s, served))
	return d
}

// servedCondition is condition Served. It says since when the list is what it is.
func servedCondition(v decide.View, s *world.Service, served []world.Frontend) world.Condition {
	c := world.Condition{Type: world.ConditionServed}
	if len(served) == 0 {
		return c
	}
	c.Status, c.Reason, c.Message = "True", ReasonServed, world.FormatServed(served)
	if was := decide.Condition(s.Conditions, c.Type); was.Status != c.Status || was.Message != c.Message ||
		was.Since.IsZero() {
		c.Since = v.Now.UTC().Truncate(time.Second) // as exact as the API keeps it
	} else {
		c.Since = was.Since
	}
	return c
}

// showsCondition says whether a Service shows a condition.
func showsCondition(s *world.Service, kind string) bool {
	return decide.Condition(s.Conditions, kind).Status != ""
}
