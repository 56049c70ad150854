package world

import (
	"slices"

	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/ref"
)

// Claim says which object decides about the source of a pod's packets to some destinations.
type Claim struct {
	By           ref.Object
	Destinations destinations.Set // nil: everything outside the cluster
}

// Claims are those to a pod's packets of a family in a network, in order of precedence and disjoint by destination.
// Where no object has a claim, packets leave with the node's address. The objects without one stand by, which is no
// state: it is what this says when the others are gone.
func (w *View) Claims(p *Pod, network string, f Family) []Claim {
	selecting := w.Selecting(p)
	if network != ref.DefaultNetwork {
		return nil
	}
	return ClaimsOf(selecting, f)
}

// ClaimsOf are the claims to packets of a family of a pod that EgressIPs select, which are given by age: of those that
// bind, then of others that are active. One that has been given a node and that nobody holds yet takes no packet from
// one in force: until it is held, if it ever is, that packet would leave with the node's address.
func ClaimsOf(selecting []*EgressIP, f Family) []Claim {
	var binding, waiting []Claim
	for _, e := range selecting {
		switch {
		case e.binds(f):
			binding = append(binding, e.claim())
		case e.Active(f):
			waiting = append(waiting, e.claim())
		}
	}
	return Disjoint(append(binding, waiting...))
}

// claim is what an EgressIP claims of each pod that it selects.
func (e *EgressIP) claim() Claim { return Claim{By: ref.Object{Kind: ref.EgressIP, Name: e.Name}} }

// Disjoint deletes from claims, given in order of precedence, those that overlap one before them that stays: an object
// has all its destinations for a pod, or stands by for it. One without destinations claims nothing.
func Disjoint(claims []Claim) []Claim {
	out := claims[:0]
	for _, c := range claims {
		if (c.Destinations == nil || len(c.Destinations) > 0) && !slices.ContainsFunc(out, c.overlaps) {
			out = append(out, c)
		}
	}
	return out
}

func (c Claim) overlaps(o Claim) bool { return c.Destinations.Overlaps(o.Destinations) }

// StandsBy are those of the claims to a pod's packets of a family that an EgressIP, which selects the pod, stands by
// for; none where it has a claim itself.
func (e *EgressIP) StandsBy(claims []Claim, f Family) []Claim {
	own := e.claim()
	if !e.Asks(f) || slices.ContainsFunc(claims, func(c Claim) bool { return c.By == own.By }) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(claims), func(c Claim) bool { return !c.overlaps(own) })
}
