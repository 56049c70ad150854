package egressip

import (
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/patience"
	"github.com/egret-net/egret/internal/world"
)

// refusalNotices are what keeps an object's addresses from being placed, by the object itself and by others.
func (o *object) refusalNotices(partly bool) []decide.Notice {
	var out []decide.Notice
	for _, p := range o.places {
		if p.host != nowhere {
			continue
		}
		event := p.why.event
		if partly && event == EventNoNode {
			event = EventUnassigned
		}
		f := decide.Finding{Kind: p.why.event, Reason: p.why.condition, IP: p.ip}
		out = append(out, decide.Notice{Finding: f, Event: event, Message: p.why.text})
	}
	for _, problem := range o.e.Problems {
		out = append(out, ofSpec(EventInvalid, problem))
	}
	for _, problem := range selectorProblems(o.e) {
		out = append(out, ofSpec(ReasonInvalidSelector, problem))
	}
	if problem := o.e.UnassignedProblem; problem != "" {
		f := decide.Finding{Kind: unreadAnnotation, Detail: problem}
		out = append(out, decide.Notice{Finding: f, Event: EventInvalid, Message: problem})
	}
	return out
}

// unreadAnnotation is the kind of a finding about when-unassigned.
const unreadAnnotation = "UnreadAnnotation"

func ofSpec(kind, problem string) decide.Notice {
	return decide.Notice{Finding: decide.Finding{Kind: kind, Detail: problem}, Event: kind, Message: problem}
}

// hindrance is what keeps condition Ready from being True. It becomes an Event, too, if it is about this object alone:
// a fault of a whole node would be an Event of each object that comes to the node.
type hindrance struct {
	decide.Finding
	text     string
	ofObject bool
}

// Reasons of hindrances, beside NotHeld.
const (
	notServed  = "NotServed"
	notSteered = "NotSteered"
)

// notSteering are the nodes that are waited for to confirm that they steer.
func (a *assigner) notSteering(name string, u patience.Unsteered) []hindrance {
	var out []hindrance
	for _, n := range u.Waiting {
		f := decide.Finding{Kind: EventNodeProblem, Reason: notSteered, Family: n.Family, Node: n.Node, Detail: n.Says}
		out = append(out, hindrance{f, n.Text, a.hasProblemOf(n.Node, name)})
	}
	return out
}

// rowHindrances are what holders refuse of the rows of pods, though they hold what they are assigned: those pods are
// not translated.
func (a *assigner) rowHindrances(name string, items []world.Assignment) []hindrance {
	var out []hindrance
	for _, i := range items {
		if a.reportsHolding(name, i) && a.hasProblemOf(i.Node, name) {
			problem := a.w.Problem(i.Node, name)
			text := i.Node + " holds " + i.IP.String() + " and does not serve all pods: " + problem
			f := decide.Finding{Kind: EventNodeProblem, Reason: notServed, IP: i.IP, Node: i.Node, Detail: problem}
			out = append(out, hindrance{f, text, true})
		}
	}
	return out
}

// hasProblemOf says whether a node has a problem of that EgressIP, and not of all.
func (a *assigner) hasProblemOf(node, name string) bool { return a.handoverRound().Refuses(node, name) }

func hindranceTexts(list []hindrance) []string {
	var out []string
	for _, h := range list {
		out = append(out, h.text)
	}
	return out
}

// hindranceNotices are the notices of the hindrances that a condition names.
func hindranceNotices(list []hindrance) []decide.Notice {
	var out []decide.Notice
	for _, h := range list {
		if h.ofObject {
			out = append(out, decide.Notice{Finding: h.Finding, Event: EventNodeProblem, Message: h.text})
		}
	}
	return out
}

// previousNotices are the notices of the last decision about an object. The first decision of a term has no news: the
// previous leader has reported the faults in the conditions.
func (a *assigner) previousNotices(e *world.EgressIP, now []decide.Notice) []decide.Notice {
	if last, is := a.Last[e.Name]; is && last.UID == e.UID {
		return last.Notices
	}
	return slices.DeleteFunc(slices.Clone(now), func(n decide.Notice) bool { return !showsAlready(e, n.Finding) })
}

// showsAlready says whether an object's conditions have something of a finding's kind, as far as they were decided of
// its present spec.
func showsAlready(e *world.EgressIP, f decide.Finding) bool {
	assigned, ready := conditionOf(e, ConditionAssigned), conditionOf(e, ConditionReady)
	switch f.Kind {
	case EventAddressInUse:
		return conditionOf(e, ConditionAddressConflict).Status == "True"
	case EventNodeProblem:
		return ready.Status == "False"
	case unreadAnnotation:
		return strings.Contains(conditionOf(e, ConditionFallback).Message, f.Detail)
	case ReasonInvalidSelector:
		return ready.Reason == ReasonInvalidSelector && ready.Generation == e.Generation
	}
	return assigned.Status == "False" && assigned.Generation == e.Generation && e.Assignee(f.IP) == ""
}
