package controller

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// egressIPs are the EgressIPs with what they say and what they should say. While this process leads, what it decided stands in the
// world in place of what the API has not shown yet: a decision never sees less than the one before it.
type egressIPs struct {
	says   map[string]*world.EgressIP // as the API last showed it
	should map[string]*world.EgressIP // the same, with the status that was decided
	events map[string][]egressip.Event
	// overlaps and served are told of all that changes, from the API and by decisions.
	overlaps *egressip.Overlaps
	served   *egressip.Served
	patience *egressip.Patience
	freed    bool // the API has shown that an address was given up, for which another object may wait
}

func newEgressIPs() *egressIPs {
	return &egressIPs{
		says: map[string]*world.EgressIP{}, should: map[string]*world.EgressIP{}, events: map[string][]egressip.Event{}, overlaps: egressip.NewOverlaps(),
		served: egressip.NewServed(), patience: egressip.NewPatience(),
	}
}

// see takes in what changed in the world, and puts there what was decided.
func (s *egressIPs) see(w *world.World) {
	for name := range s.says {
		if w.EgressIP(name) == nil {
			s.forget(name)
		}
	}
	for _, name := range w.EgressIPs() {
		s.seeOne(w, name)
	}
}

// seeOne says whether the API has shown an object anew.
func (s *egressIPs) seeOne(w *world.World, name string) bool {
	e, should := w.EgressIP(name), s.should[name]
	if e == nil || e == should {
		return false
	}
	if should != nil && should.UID != e.UID {
		s.forget(name)
		should = nil
	}
	s.freed = s.freed || givesUp(s.says[name], e)
	s.says[name] = e
	if should != nil {
		d := decisionOf(should)
		d.Leaving = datedAs(d.Leaving, e)
		s.put(w, withStatus(e, d, slices.Concat(filter(should, ours), filter(e, foreign))))
	}
	return true
}

// givesUp says whether an object has an address less on any node than it had; nil is none.
func givesUp(old, now *world.EgressIP) bool {
	return old != nil && slices.ContainsFunc(old.Items, func(i world.Assignment) bool {
		return !slices.ContainsFunc(now.Items, func(j world.Assignment) bool { return i.IP == j.IP })
	})
}

// written is an object as the API last showed it.
func (s *egressIPs) written(name string) *world.EgressIP { return s.says[name] }

// seen begins to wait for what the API has shown of an object, and says when to decide though nothing changes; zero: not.
func (s *egressIPs) seen(w *world.World, name string, now time.Time) time.Time {
	says := s.says[name]
	again := s.patience.Seen(w, says, now)
	if s.freed {
		s.freed = false
		return now
	}
	if len(says.Leaving) > 0 { // no decision has counted the time of what was not written
		return now.Add(lazily)
	}
	return again
}

// unseen says whether the API has shown anything of which the world told nobody, such as a condition that somebody edited.
func (s *egressIPs) unseen(w *world.World) bool {
	return slices.ContainsFunc(w.EgressIPs(), func(name string) bool { return w.EgressIP(name) != s.should[name] })
}

func (s *egressIPs) forget(name string) {
	delete(s.says, name)
	delete(s.should, name)
	delete(s.events, name)
}

func (s *egressIPs) put(w *world.World, e *world.EgressIP) {
	s.should[e.Name] = e
	s.touch(w.SetEgressIP(e))
}

func (s *egressIPs) touch(touched []world.Touch) {
	s.overlaps.Touch(touched)
	s.served.Touch(touched)
}

// update brings the counts of pods up to date.
func (s *egressIPs) update(w *world.World) {
	s.overlaps.Update(w)
	s.served.Update(w)
}

// unpunctual is how much later than it was decided a status is sent with new times. One that is sent at once comes back just as it was decided.
const unpunctual = time.Second

// toSend is what should be written: who is not listed as leaving yet leaves from the time when it is sent, however long that had to wait.
func toSend(says, should *world.EgressIP, now time.Time) *world.EgressIP {
	e := *should
	e.Leaving = slices.Clone(should.Leaving)
	for i := range e.Leaving {
		if l := &e.Leaving[i]; !says.Leaves(l.Node, l.IP) && now.Sub(l.Since) > unpunctual {
			l.Since = now.UTC().Truncate(time.Microsecond) // as exact as the API keeps it
		}
	}
	return &e
}

// datedAs are those who leave, with the times with which they were sent.
func datedAs(leaving []world.Leaving, e *world.EgressIP) []world.Leaving {
	out := slices.Clone(leaving)
	for i := range out {
		for _, l := range e.Leaving {
			if l.Node == out[i].Node && l.IP == out[i].IP && l.Since.After(out[i].Since) {
				out[i].Since = l.Since
			}
		}
	}
	return out
}

// decisionOf is what a status says of a decision, without its conditions.
func decisionOf(e *world.EgressIP) egressip.Decision {
	return egressip.Decision{Items: e.Items, Leaving: e.Leaving, InForce: e.InForce}
}

func withStatus(e *world.EgressIP, d egressip.Decision, conditions []world.Condition) *world.EgressIP {
	n := *e
	n.Items, n.Leaving, n.InForce, n.Conditions = d.Items, d.Leaving, d.InForce, conditions
	return &n
}

// place puts the assignments of a decision in place. Who serves a pod, and who stands by, follows from all of them.
func (s *egressIPs) place(w *world.World, all map[string]egressip.Decision) {
	for name, d := range all {
		if e := w.EgressIP(name); !samePlaces(e, withStatus(e, d, nil)) {
			s.put(w, withStatus(e, d, e.Conditions))
		}
	}
	s.update(w)
}

// decide puts a decision about an object in place, which place has seen.
func (s *egressIPs) decide(w *world.World, name string, d egressip.Decision, now time.Time) {
	old := w.EgressIP(name)
	overlapped, events := s.overlaps.Condition(old)
	e := withStatus(old, d, conditions(old, append(d.Conditions, overlapped), now))
	if s.should[name] == nil || !sameStatus(old, e) {
		s.put(w, e)
	}
	s.events[name] = slices.Concat(s.events[name], d.Events, events)
}

// conditions are those that were decided, dated, and those of others.
func conditions(old *world.EgressIP, decided []world.Condition, now time.Time) []world.Condition {
	out := slices.Concat(decided, filter(old, foreign))
	for i := range out {
		if out[i].Since.IsZero() {
			out[i].Since = now.UTC().Truncate(time.Second) // as exact as the API keeps it
		}
	}
	return out
}

func filter(e *world.EgressIP, which func(world.Condition) bool) []world.Condition {
	var out []world.Condition
	for _, c := range e.Conditions {
		if which(c) {
			out = append(out, c)
		}
	}
	return out
}

// ours are the conditions that this controller writes; others' stay as they are.
func ours(c world.Condition) bool { return egressip.Decides(c.Type) }

func foreign(c world.Condition) bool { return !ours(c) }

// sameStatus says that two EgressIPs' statuses say the same; the order of conditions says nothing.
func sameStatus(a, b *world.EgressIP) bool {
	return samePlaces(a, b) && len(a.Conditions) == len(b.Conditions) &&
		!slices.ContainsFunc(a.Conditions, func(c world.Condition) bool {
			return !slices.ContainsFunc(b.Conditions, func(o world.Condition) bool { return sameCondition(c, o) })
		})
}

// samePlaces says that two EgressIPs' statuses say the same of where the addresses are.
func samePlaces(a, b *world.EgressIP) bool {
	return slices.Equal(a.Items, b.Items) && slices.EqualFunc(a.Leaving, b.Leaving, world.Leaving.Same) && a.InForce == b.InForce
}

func sameCondition(a, b world.Condition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message &&
		a.Generation == b.Generation && a.Since.Equal(b.Since)
}

// echo says that an object came back from the API just as it was decided: there is nothing new to decide.
func (s *egressIPs) echo(e *world.EgressIP) bool {
	should := s.should[e.Name]
	return should != nil && should.UID == e.UID && should.Generation == e.Generation && should.Created.Equal(e.Created) &&
		should.DropWhenUnassigned == e.DropWhenUnassigned && sameStatus(should, e)
}

// takeEvents are the Events to post now that the status is written.
func (s *egressIPs) takeEvents(name string) []kube.Event {
	e := s.should[name]
	if e == nil {
		return nil
	}
	var out []kube.Event
	for _, ev := range s.events[name] {
		out = append(out, kube.Event{
			Regarding: corev1.ObjectReference{APIVersion: v1.GroupVersion.String(), Kind: "EgressIP", Name: name, UID: types.UID(e.UID)},
			Warning:   ev.Warning, Reason: ev.Reason, Action: "Assign", Note: ev.Message,
		})
	}
	delete(s.events, name)
	return out
}
