package controller

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/feature/service"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// services are what is refused to Services, in words. Who gets an address needs no decision: all nodes know by the same function.
type services struct {
	refused map[string]string   // by Service, of those that something is refused to
	told    map[string]string   // the words of the last Event
	touched map[string]struct{} // Services that have changed since the last decision
	all     bool                // any may be refused something else by now
}

func newServices() *services {
	return &services{refused: map[string]string{}, told: map[string]string{}, touched: map[string]struct{}{}, all: true}
}

// touch hears of all that changes in the world.
func (s *services) touch(t world.Touch) {
	switch t.Kind {
	case world.KindService:
		s.touched[t.Key] = struct{}{}
	case world.KindNodeAddress, world.KindNode:
		s.all = true
	}
}

// decide looks at the Services for which something may have changed. It returns those of which the status may have to be written.
func (s *services) decide(w *world.World) []string {
	var changed []string
	for key := range s.concerned(w) {
		delete(s.refused, key)
		o := w.Service(key)
		if o == nil {
			continue
		}
		if words := strings.Join(service.Refusals(&w.View, o), "; "); words != "" {
			s.refused[key] = words
		}
		if s.conditions(o) != nil {
			changed = append(changed, key)
		}
	}
	for key := range s.told {
		if s.refused[key] == "" {
			delete(s.told, key)
		}
	}
	s.all = false
	clear(s.touched)
	slices.Sort(changed)
	return changed
}

// concerned are those that have changed, those that ask for the same, and those that may get now what they did not.
func (s *services) concerned(w *world.World) map[string]struct{} {
	out := map[string]struct{}{}
	add := func(keys iter.Seq[string]) {
		for key := range keys {
			out[key] = struct{}{}
		}
	}
	if s.all {
		add(slices.Values(w.Services()))
	}
	if s.all || len(s.touched) > 0 {
		add(maps.Keys(s.touched))
		add(maps.Keys(s.refused))
	}
	for key := range s.touched {
		for _, f := range w.Service(key).Frontends() {
			add(slices.Values(w.Claimants(f)))
		}
	}
	return out
}

// conditions are those that a Service should have of this controller, in place of what it has; nil where it has them.
func (s *services) conditions(o *world.Service) []world.Condition {
	i := slices.IndexFunc(o.Conditions, func(c world.Condition) bool { return c.Type == v1.ConditionRefused })
	words := s.refused[o.Key()]
	switch {
	case words == "" && i < 0, i >= 0 && o.Conditions[i].Message == words && o.Conditions[i].Status == "True":
		return nil
	case words == "":
		return []world.Condition{}
	}
	c := world.Condition{Type: v1.ConditionRefused, Status: "True", Reason: v1.ReasonRefused, Message: words, Since: time.Now().UTC().Truncate(time.Second)}
	if i >= 0 && o.Conditions[i].Status == "True" {
		c.Since = o.Conditions[i].Since
	}
	return []world.Condition{c}
}

// takeEvents are the Events to post now that the status is written.
func (s *services) takeEvents(o *world.Service) []kube.Event {
	words := s.refused[o.Key()]
	if words == "" || words == s.told[o.Key()] {
		return nil
	}
	s.told[o.Key()] = words
	return []kube.Event{{
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: o.Namespace, Name: o.Name, UID: types.UID(o.UID)},
		Warning:   true, Reason: v1.ReasonRefused, Action: "Serve", Note: words,
	}}
}
