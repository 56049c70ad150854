package egressip

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// events are the differences between what an object says and what is decided now.
func (o *object) events(a *assigner, items []world.Assignment) []decide.Event {
	var out []decide.Event
	for _, now := range items {
		if e, changed := a.placed(o.e, now); changed {
			out = append(out, e)
		}
	}
	for _, old := range o.e.Items {
		if !slices.ContainsFunc(items, func(i world.Assignment) bool { return i.IP == old.IP }) {
			cause := a.cause(o.e, old)
			out = append(out, decide.Event{Reason: EventReleased, IP: old.IP, Cause: cause,
				Message: old.IP.String() + " is no longer on " + old.Node + " (" + a.inWords(cause, old) + ")"})
		}
	}
	return append(out, o.refusals(len(items) > 0)...)
}

func (a *assigner) placed(e *world.EgressIP, now world.Assignment) (decide.Event, bool) {
	i := slices.IndexFunc(e.Items, func(old world.Assignment) bool { return old.IP == now.IP })
	if i < 0 {
		message := now.IP.String() + " is assigned to " + now.Node
		return decide.Event{Reason: EventAssigned, IP: now.IP, Message: message}, true
	}
	old := e.Items[i]
	if old.Node == now.Node {
		return decide.Event{}, false
	}
	cause := a.cause(e, old)
	message := now.IP.String() + " moves from " + old.Node + " (" + a.inWords(cause, old) + ") to " + now.Node
	return decide.Event{Reason: EventMoved, IP: now.IP, Cause: cause, Message: message}, true
}

// inWords is a cause, with what the node says of its link.
func (a *assigner) inWords(cause string, old world.Assignment) string {
	if n := a.w.Node(old.Node); n != nil && cause == CauseLink {
		return cause + ": " + a.faultFor(n, old.IP)
	}
	return cause
}

// cause is why an address is not where it was.
func (a *assigner) cause(e *world.EgressIP, old world.Assignment) string {
	n := a.w.Node(old.Node)
	switch {
	case !slices.Contains(e.IPs, old.IP):
		return CauseSpec
	case a.conflicts(e, old.IP):
		return ReasonConflict
	case n == nil:
		return CauseDeleted
	case a.unfit(n) != "":
		return a.unfit(n)
	case a.w.Overdue(n.Name, world.EgressAddress{EgressIP: e.Name, IP: old.IP}) == world.TooLate:
		return CauseNotHeld
	case a.faultFor(n, old.IP) != "":
		return CauseLink
	case !a.inNetwork(n, old.IP):
		return CauseNetwork
	}
	return ReasonConflict // with another address of the same object on that node
}

func (a *assigner) conflicts(e *world.EgressIP, ip netip.Addr) bool {
	_, refused := a.refused[ip]
	return refused || a.owner[ip] != e
}

// refusals are what is refused now and was not, or for another reason, when the condition Assigned was written.
func (o *object) refusals(partly bool) []decide.Event {
	said := condition(o.e, ConditionAssigned).Message
	var out []decide.Event
	for _, p := range o.places {
		if p.host != nowhere || p.why.toldIn(said) {
			continue
		}
		reason := p.why.event
		if partly && reason == EventNoNode {
			reason = EventUnassigned
		}
		out = append(out, decide.Event{Warning: true, Reason: reason, Message: p.why.text()})
	}
	for _, problem := range o.e.Problems {
		if !strings.Contains(said, problem) {
			out = append(out, decide.Event{Warning: true, Reason: EventInvalid, Message: problem})
		}
	}
	if p := o.e.SelectorProblem; p != "" && !strings.Contains(condition(o.e, ConditionReady).Message, p) {
		out = append(out, decide.Event{Warning: true, Reason: ReasonInvalidSelector, Message: p})
	}
	return out
}

// problems are what keeps nodes from holding what they are assigned, or from serving pods, if condition Ready says so now and did not. A problem of
// the whole node is in the condition alone: it is not of this object, and would be told of once for each that comes to the node.
func (a *assigner) problems(e *world.EgressIP, ready world.Condition, items []world.Assignment) []decide.Event {
	said := condition(e, ConditionReady).Message
	var out []decide.Event
	for _, text := range a.ofObject(e, items) {
		if strings.Contains(ready.Message, text) && !strings.Contains(said, text) {
			out = append(out, decide.Event{Warning: true, Reason: EventNodeProblem, Message: text})
		}
	}
	return out
}

// ofObject are the words of condition Ready for what nodes refuse of one object alone.
func (a *assigner) ofObject(e *world.EgressIP, items []world.Assignment) []string {
	out := a.troubles(e.Name, items)
	for _, i := range items {
		if a.refuses(i.Node, e.Name) || a.isLate(e.Name, i) {
			out = append(out, a.waitingFor(e.Name, i))
		}
	}
	for _, f := range a.w.Config.Families() {
		for _, node := range a.served.Nodes(e.Name, f) {
			if a.refuses(node, e.Name) {
				out = append(out, a.unsteeredText(node, e.Name, f))
			}
		}
	}
	return out
}
