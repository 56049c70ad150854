package egressip

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/decide/patience"
	"github.com/egret-net/egret/internal/world"
)

// moveEvents are the differences between where an object's addresses are said to be, and where they are decided to be
// now.
func (o *object) moveEvents(a *assigner, items []world.Assignment) []decide.Event {
	var out []decide.Event
	for _, now := range items {
		if e, changed := a.moveEvent(o.e, now); changed {
			out = append(out, e)
		}
	}
	for _, old := range o.e.Items {
		if !slices.ContainsFunc(items, func(i world.Assignment) bool { return i.IP == old.IP }) {
			cause := a.moveCause(o.e, old)
			out = append(out, decide.Event{Reason: EventReleased, IP: old.IP, Cause: cause,
				Message: old.IP.String() + " is no longer on " + old.Node + " (" + a.inWords(cause, old) + ")"})
		}
	}
	return out
}

func (a *assigner) moveEvent(e *world.EgressIP, now world.Assignment) (decide.Event, bool) {
	old := world.Assignment{Node: e.Assignee(now.IP), IP: now.IP}
	switch old.Node {
	case now.Node:
		return decide.Event{}, false
	case "":
		message := now.IP.String() + " is assigned to " + now.Node
		return decide.Event{Reason: EventAssigned, IP: now.IP, Message: message}, true
	}
	cause := a.moveCause(e, old)
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

// moveCause is why an address is not where it was.
func (a *assigner) moveCause(e *world.EgressIP, old world.Assignment) string {
	n := a.w.Node(old.Node)
	switch {
	case !slices.Contains(e.IPs, old.IP):
		return CauseSpec
	case a.isConflicting(e.Name, old.IP):
		return ReasonConflict
	case n == nil:
		return handover.CauseDeleted
	case a.unfitReason(n) != "":
		return a.unfitReason(n)
	case isUnselected(e, n):
		return handover.CauseUnselected
	case a.Patience.Of(e.Name, old) == patience.TooLate:
		return handover.CauseNotHeld
	case a.faultFor(n, old.IP) != "":
		return CauseLink
	case !a.inNetwork(n, old.IP):
		return CauseNetwork
	}
	return ReasonConflict // with another address of the same object on that node
}

func (a *assigner) isConflicting(name string, ip netip.Addr) bool {
	_, refused := a.refused[ip]
	return refused || a.owner[ip] != a.byName[name]
}
