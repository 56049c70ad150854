package service

import (
	"iter"
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
	refused map[string][]decide.Notice // by Service, of those that something is refused to
	told    decide.Told
	touched map[string]struct{} // Services that have changed since the last decision
	all     bool                // any may be refused something else by now
}

// NewRefuser has looked at no Service yet.
func NewRefuser() *Refuser {
	return &Refuser{refused: map[string][]decide.Notice{}, told: decide.Told{}, touched: map[string]struct{}{},
		all: true}
}

// Touched notes which Services are to be looked at.
func (r *Refuser) Touched(touched []world.Touch) {
	for _, t := range touched {
		switch t.Kind {
		case world.KindService:
			if !r.all {
				r.touched[t.Key] = struct{}{}
			}
		case world.KindNodeAddress, world.KindNode:
			r.all = true
		}
	}
}

// Decide looks at the Services for which something may have changed.
func (r *Refuser) Decide(v decide.View) ([]decide.Desired, time.Time) {
	var out []decide.Desired
	for _, key := range slices.Sorted(maps.Keys(r.concerned(v.World))) {
		delete(r.refused, key)
		s := v.Service(key)
		if s == nil {
			delete(r.told, key)
			continue
		}
		if refused := Refusals(&v.View, s); len(refused) > 0 {
			r.refused[key] = refused
		}
		if len(r.refused[key]) > 0 || shows(s) {
			out = append(out, r.desired(v, s))
		} else {
			delete(r.told, key)
		}
	}
	r.all = false
	clear(r.touched)
	return out, time.Time{}
}

// desired is a Service with condition Refused as long as something is refused to it.
func (r *Refuser) desired(v decide.View, s *world.Service) decide.Desired {
	d := decide.Desired{Kind: world.KindService, Key: s.Key(), Decision: world.Decision{UID: s.UID}}
	now := r.refused[s.Key()]
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

// concerned are those that have changed, those that ask for the same, and those that may get now what they did not.
func (r *Refuser) concerned(w *world.World) map[string]struct{} {
	out := map[string]struct{}{}
	add := func(keys iter.Seq[string]) {
		for key := range keys {
			out[key] = struct{}{}
		}
	}
	if r.all {
		add(slices.Values(w.Services()))
	}
	if r.all || len(r.touched) > 0 {
		add(maps.Keys(r.touched))
		add(maps.Keys(r.refused))
	}
	for key := range r.touched {
		for _, f := range w.Service(key).Frontends() {
			add(slices.Values(w.Claimants(f)))
		}
	}
	return out
}
