package world

import (
	"slices"
	"time"
)

// Placement is what is decided about an EgressIP, beside conditions: which nodes hold its addresses, and which did.
type Placement struct {
	Items   []Assignment
	Leaving []Leaving
	InForce [2]bool // by Family
}

// decidesEgressIP is how that stands over EgressIPs.
func decidesEgressIP() Decides[EgressIP] {
	return Decides[EgressIP]{UID: func(e *EgressIP) string { return e.UID }, Over: placedOver, Same: sameStatus}
}

// ShownEgressIP is an EgressIP as the API last showed it, whatever was decided of it; or nil.
func (w *World) ShownEgressIP(name string) *EgressIP { return Shown[EgressIP](w, KindEgressIP, name) }

func placedOver(shown *EgressIP, d Decision) *EgressIP {
	out := *shown
	if p, is := d.Status.(Placement); is {
		out.Items, out.Leaving, out.InForce = p.Items, datedAs(p.Leaving, shown.Leaving), p.InForce
	}
	out.Conditions = conditionsOver(shown.Conditions, d.Conditions)
	return &out
}

// datedAs are those that leave, with the times with which they were written.
func datedAs(decided, shown []Leaving) []Leaving {
	out := slices.Clone(decided)
	for i := range out {
		for _, l := range shown {
			if l.Node == out[i].Node && l.IP == out[i].IP && l.Since.After(out[i].Since) {
				out[i].Since = l.Since
			}
		}
	}
	return out
}

func sameStatus(a, b *EgressIP) bool {
	return slices.Equal(a.Items, b.Items) && slices.EqualFunc(a.Leaving, b.Leaving, Leaving.Same) &&
		a.InForce == b.InForce && SameConditions(a.Conditions, b.Conditions)
}

// unpunctual is how much later than it was decided a status is written with new times. One that is written at once
// comes back just as it was decided.
const unpunctual = time.Second

// WrittenAt is an EgressIP with the status as it is to be written at a time: a node that is not listed as leaving yet
// leaves from then, however long the write had to wait. None can know before that it has a successor.
func (e *EgressIP) WrittenAt(now time.Time, shown *EgressIP) *EgressIP {
	out := *e
	out.Leaving = slices.Clone(e.Leaving)
	for i := range out.Leaving {
		if l := &out.Leaving[i]; !shown.Leaves(l.Node, l.IP) && now.Sub(l.Since) > unpunctual {
			l.Since = now.UTC().Truncate(time.Microsecond) // as exact as the API keeps it
		}
	}
	return &out
}
