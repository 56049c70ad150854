package world

import (
	"slices"

	"github.com/egret-net/egret/internal/ref"
)

// Claim says which object decides about the source of a pod's packets to that object's destinations. Which these are is
// no part of it (View.Destinations): a network more or less is no matter of each pod.
type Claim struct{ By ref.Object }

// Claims are those to a pod's packets of a family in its primary network, in order of precedence and disjoint by
// destination; in another there are none. Where no object has a claim, packets leave with the node's address. The
// objects without one stand by, which is no state: it is what this says when the others are gone.
func (w *View) Claims(p *Pod, network string, f Family) []Claim {
	if w.PrimaryNetwork(p.Namespace) != network {
		return nil
	}
	var out []Claim
	for _, e := range w.claimants(w.Selecting(p), f) {
		out = append(out, e.claim())
	}
	return out
}

func (e *EgressIP) claim() Claim { return Claim{By: ref.Object{Kind: ref.EgressIP, Name: e.Name}} }

// claimants are those that have a claim to packets of a family, of the EgressIPs that select a pod, which are given by
// age: of those that bind, then of others that are active. One that has been given a node and that nobody holds yet
// takes no packet from one in force: until it is held, if it ever is, that packet would leave with the node's address.
// One that binds, and whose destinations are not known, comes first with all of them: each may be one that it had
// before others.
func (w *View) claimants(selecting []*EgressIP, f Family) []*EgressIP {
	var unknown, binding, waiting []*EgressIP
	for _, e := range selecting {
		switch {
		case e.binds(f) && e.TrafficUnknown:
			unknown = append(unknown, e)
		case e.binds(f):
			binding = append(binding, e)
		case e.Active(f):
			waiting = append(waiting, e)
		}
	}
	return w.disjoint(slices.Concat(unknown, binding, waiting), f)
}

// disjoint deletes from EgressIPs, given in order of precedence, those that overlap one before them that stays: an
// object has all its destinations for a pod, or stands by for it. One without destinations claims nothing.
func (w *View) disjoint(list []*EgressIP, f Family) []*EgressIP {
	out := list[:0]
	for _, e := range list {
		before := func(o *EgressIP) bool { return w.overlap(o, e, f) }
		if w.overlap(e, e, f) && !slices.ContainsFunc(out, before) {
			out = append(out, e)
		}
	}
	return out
}

// Standby is an object without a claim to a pod's packets, and the claims that keep it from one.
type Standby struct {
	By  ref.Object
	For []Claim
}

// Standbys are those of a pod in a family, of EgressIPs that select it and ask for addresses of the family.
func (w *View) Standbys(p *Pod, f Family) []Standby {
	selecting := w.Selecting(p)
	if len(selecting) < 2 {
		return nil
	}
	var out []Standby
	claimants := w.claimants(selecting, f)
	for _, e := range selecting {
		if !e.Asks(f) || slices.Contains(claimants, e) {
			continue
		}
		if s := w.standby(e, claimants, f); len(s.For) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// standby is an EgressIP that is none of those that have claims.
func (w *View) standby(e *EgressIP, claimants []*EgressIP, f Family) Standby {
	s := Standby{By: e.claim().By}
	for _, o := range claimants {
		if w.overlap(o, e, f) {
			s.For = append(s.For, o.claim())
		}
	}
	return s
}
