package world

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/egret-net/egret/internal/ref"
)

// Placement is which nodes hold the addresses of an EgressIP or an EgressService, and which did.
type Placement struct {
	Items []Assignment
	// Given are since when, of those of which the status says it. With HostAll they are of it and each unspecified
	// address.
	Given   []Given
	Leaving []Leaving
	Granted []netip.Addr // of an EgressIP: addresses that have or once had a node, sorted
	InForce [2]bool      // by Family: once held, its pods send nothing with another source
}

// Names says whether the status names a node for an address: as the one to hold it, or as one that is leaving.
func (p *Placement) Names(node string, ip netip.Addr) bool {
	return slices.Contains(p.Items, Assignment{node, ip}) || p.Leaves(node, ip)
}

// Since is when a node was given an address that the status names it for, as the one to hold it or as one that is
// leaving; 0 if the status does not say.
func (p *Placement) Since(a Assignment) ref.Since {
	for _, g := range p.Given {
		if g.Assignment == a {
			return g.Since
		}
	}
	for _, l := range p.Leaving {
		if l.Node == a.Node && l.IP == a.IP {
			return l.Given
		}
	}
	return 0
}

// Leaves says whether a node is a former holder of an address that is to go on translating to it.
func (p *Placement) Leaves(node string, ip netip.Addr) bool {
	return slices.ContainsFunc(p.Leaving, func(l Leaving) bool { return l.Node == node && l.IP == ip })
}

// Assignee is the node that is to hold an address, or "".
func (p *Placement) Assignee(ip netip.Addr) string {
	for _, a := range p.Items {
		if a.IP == ip {
			return a.Node
		}
	}
	return ""
}

// HasItems says whether any address of a family is assigned.
func (p *Placement) HasItems(f Family) bool {
	return slices.ContainsFunc(p.Items, func(a Assignment) bool { return FamilyOf(a.IP) == f })
}

// Same compares two placements.
func (p *Placement) Same(o *Placement) bool {
	return slices.Equal(p.Items, o.Items) && slices.Equal(p.Given, o.Given) &&
		slices.EqualFunc(p.Leaving, o.Leaving, Leaving.Same) && slices.Equal(p.Granted, o.Granted) &&
		p.InForce == o.InForce
}

// Keeps says whether an address is the object's whoever else claims it: it has a node, or once had one.
func (p *Placement) Keeps(ip netip.Addr) bool {
	return p.Assignee(ip) != "" || slices.Contains(p.Granted, ip)
}

// namedAddresses are those addresses for which the status names a node.
func (p *Placement) namedAddresses(node string, ips []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(ips), func(ip netip.Addr) bool { return !p.Names(node, ip) })
}

// PlacementOf returns the placement of an object by its key, an EgressIP or an EgressService; nil without one.
func (w *View) PlacementOf(key string) *Placement {
	if strings.Contains(key, "/") {
		if s := w.EgressService(key); s != nil {
			return &s.Placement
		}
		return nil
	}
	if e := w.EgressIP(key); e != nil {
		return &e.Placement
	}
	return nil
}

// ShownPlacementOf is the same as the API last showed it, whatever was decided.
func (w *World) ShownPlacementOf(key string) *Placement {
	if strings.Contains(key, "/") {
		if s := Shown[EgressService](w, KindEgressService, key); s != nil {
			return &s.Placement
		}
		return nil
	}
	if e := w.ShownEgressIP(key); e != nil {
		return &e.Placement
	}
	return nil
}

// withShown is a decided placement, instead of the one that the API shows.
func (p Placement) withShown(shown *Placement) Placement {
	p.Leaving = datedAs(p.Leaving, shown.Leaving)
	return p
}

// decidesEgressIP is how that stands over EgressIPs.
func decidesEgressIP() Decides[EgressIP] {
	return Decides[EgressIP]{UID: func(e *EgressIP) string { return e.UID }, Over: placedOver,
		Same: func(a, b *EgressIP) bool { return SameStatus(a, b) && a.Mark == b.Mark }}
}

// ShownEgressIP is an EgressIP as the API last showed it, whatever was decided of it; or nil.
func (w *World) ShownEgressIP(name string) *EgressIP { return Shown[EgressIP](w, KindEgressIP, name) }

func placedOver(shown *EgressIP, d Decision) *EgressIP {
	out := *shown
	if p, is := d.Status.(Placement); is {
		out.Placement, out.Altered = p.withShown(&shown.Placement), false
	}
	if d.Mark != 0 {
		out.Mark, out.MarkProblem = d.Mark, ""
	}
	out.Conditions = ConditionsOver(shown.Conditions, d.Conditions)
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

// SameStatus says whether two EgressIPs have the same status.
func SameStatus(a, b *EgressIP) bool {
	return a.Placement.Same(&b.Placement) && SameConditions(a.Conditions, b.Conditions) && a.Altered == b.Altered
}

// unpunctual is how much later than it was decided a status is written with new times. One that is written at once
// comes back just as it was decided.
const unpunctual = time.Second

// WrittenAt returns a placement as it must be written at a time: a node that is not listed as leaving yet leaves from
// then, however long the write had to wait. None can know before that it has a successor.
func (p Placement) WrittenAt(now time.Time, shown *Placement) Placement {
	p.Leaving = slices.Clone(p.Leaving)
	for i := range p.Leaving {
		if l := &p.Leaving[i]; !shown.Leaves(l.Node, l.IP) && now.Sub(l.Since) > unpunctual {
			l.Since = now.UTC().Truncate(time.Microsecond) // as exact as the API keeps it
		}
	}
	return p
}
