package service

import (
	"maps"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// ConditionRefused of a Service, and its reason, as api/v1 documents them.
const (
	ConditionRefused = "egret.k8s.ovn.org/Refused"
	ReasonRefused    = "AddressRefused"
)

// Refuser decides about Services: it says what is refused to them. Who gets an address needs no decision: all nodes
// know by the same function.
type Refuser struct {
	decide.IgnoresChanges
	decide.Stale
	begun bool // false: nothing was decided yet
	told  decide.Told
}

// NewRefuser has looked at no Service yet.
func NewRefuser() *Refuser { return &Refuser{Stale: decide.NewStale(), told: decide.Told{}} }

// Touched notes which Services are to be looked at: those that have changed, and those of which what was read has.
func (r *Refuser) Touched(touched []world.Touch) {
	if !r.begun {
		return // the first decision is about all; who does not lead makes none
	}
	for _, t := range touched {
		if r.Touch(t); t.Kind == world.KindService {
			r.Objects[t.Key] = struct{}{}
		}
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
		w := r.Readers.Reading(v.World, key)
		s := w.Service(key)
		if s == nil {
			r.Stale.Forget(key)
			delete(r.told, key)
			continue
		}
		if refused := Refusals(w, s); len(refused) > 0 || shows(s) {
			out = append(out, r.desired(v, s, refused))
		} else {
			delete(r.told, key)
		}
	}
	clear(r.Objects)
	return out, time.Time{}
}

// desired is a Service with condition Refused as long as something is refused to it.
func (r *Refuser) desired(v decide.View, s *world.Service, now []decide.Notice) decide.Desired {
	d := decide.Desired{Kind: world.KindService, Key: s.Key(), Decision: world.Decision{UID: s.UID}}
	d.Events = r.told.Tell(s.Key(), s.UID, shows(s), now)
	for i := range d.Events {
		d.Events[i].Action = "Serve"
	}
	if len(now) == 0 {
		d.Decision.Conditions = []world.Condition{{Type: ConditionRefused}}
		return d
	}
	c := world.Condition{Type: ConditionRefused, Status: "True", Reason: ReasonRefused, Message: decide.Messages(now)}
	d.Decision.Conditions = decide.Dated(s.Conditions, 0, v.Now, c)
	return d
}

// shows says whether a Service says that something is refused to it.
func shows(s *world.Service) bool {
	return decide.Condition(s.Conditions, ConditionRefused).Status != ""
}
