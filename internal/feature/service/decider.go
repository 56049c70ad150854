package service

import (
	"iter"
	"maps"
	"slices"
	"strings"
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
	decide.Deaf
	refused map[string]string   // by Service, of those that something is refused to
	told    map[string]string   // the words of the last Event
	touched map[string]struct{} // Services that have changed since the last decision
	all     bool                // any may be refused something else by now
}

// NewRefuser has looked at no Service yet.
func NewRefuser() *Refuser {
	return &Refuser{refused: map[string]string{}, told: map[string]string{}, touched: map[string]struct{}{}, all: true}
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
			continue
		}
		if words := strings.Join(Refusals(&v.View, s), "; "); words != "" {
			r.refused[key] = words
		}
		if r.refused[key] != "" || decide.Condition(s.Conditions, ConditionRefused).Status != "" {
			out = append(out, r.desired(v, s))
		}
	}
	maps.DeleteFunc(r.told, func(key, _ string) bool { return r.refused[key] == "" })
	r.all = false
	clear(r.touched)
	return out, time.Time{}
}

// desired is a Service with condition Refused as long as something is refused to it.
func (r *Refuser) desired(v decide.View, s *world.Service) decide.Desired {
	d := decide.Desired{Kind: world.KindService, Key: s.Key(), Decision: world.Decision{UID: s.UID}}
	words := r.refused[s.Key()]
	if words == "" {
		d.Decision.Conditions = []world.Condition{{Type: ConditionRefused}}
		return d
	}
	c := world.Condition{Type: ConditionRefused, Status: "True", Reason: ReasonRefused, Message: words}
	d.Decision.Conditions = decide.Dated(s.Conditions, 0, v.Now, c)
	if words != r.told[s.Key()] {
		r.told[s.Key()] = words
		d.Events = []decide.Event{{Warning: true, Reason: ReasonRefused, Action: "Serve", Message: words}}
	}
	return d
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
