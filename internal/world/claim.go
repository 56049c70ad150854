package world

import (
	"slices"

	"github.com/egret-net/egret/internal/ref"
)

// Claim says which object decides about the source of a pod's packets to that object's destinations. Which these are is
// no part of it (View.Destinations): a network more or less is no matter of each pod.
type Claim struct{ By ref.Object }

// Claims are those to a pod's packets of a family in its primary network, in order of precedence and disjoint by
// destination. Other networks have no claims. An EgressService has all destinations, and comes before EgressIPs: one
// that binds before all, one that only has a host before those that only have a node; but none where an EgressIP that
// selects the pod forbids it (Forbids), whoever has a claim then. Where no object has a claim, packets leave with the
// node's address. The objects without one stand by, which is no state: it is what this says when the others are gone.
func (w *View) Claims(p *Pod, network string, f Family) []Claim {
	if w.PrimaryNetwork(p.Namespace) != network {
		return nil
	}
	service := w.EgressServiceOf(p, f)
	if service != nil && w.EgressServiceBinds(service.Key(), f) {
		return []Claim{service.asClaim()}
	}
	claimants := w.claimingEgressIPs(w.Selecting(p), f)
	if service != nil && !anyBinds(claimants, f) {
		return []Claim{service.asClaim()}
	}
	var out []Claim
	for _, e := range claimants {
		out = append(out, e.asClaim())
	}
	return out
}

func (e *EgressIP) asClaim() Claim { return Claim{By: ref.Object{Kind: ref.EgressIP, Name: e.Name}} }

func (s *EgressService) asClaim() Claim { return Claim{By: ref.Of(ref.EgressService, s.Key())} }

func anyBinds(list []*EgressIP, f Family) bool {
	return slices.ContainsFunc(list, func(e *EgressIP) bool { return e.Binds(f) })
}

// claimingEgressIPs are those that have a claim to packets of a family, of the EgressIPs that select a pod, which are
// given by age: of those that bind, then of others that are active. One that has been given a node and that nobody
// holds yet takes no packet from one in force: until it is held, if it ever is, that packet would leave with the node's
// address. One that binds, and whose destinations are not known, comes first with all of them: each may be one that it
// had before others.
func (w *View) claimingEgressIPs(selecting []*EgressIP, f Family) []*EgressIP {
	var unknown, binding, waiting []*EgressIP
	for _, e := range selecting {
		switch {
		case e.Binds(f) && e.TrafficUnknown:
			unknown = append(unknown, e)
		case e.Binds(f):
			binding = append(binding, e)
		case e.Active(f):
			waiting = append(waiting, e)
		}
	}
	return w.dropOverlapping(slices.Concat(unknown, binding, waiting), f)
}

// dropOverlapping deletes from EgressIPs, given in order of precedence, those that overlap one before them that stays:
// an object has all its destinations for a pod, or stands by for it. One without destinations claims nothing.
func (w *View) dropOverlapping(list []*EgressIP, f Family) []*EgressIP {
	out := list[:0]
	for _, e := range list {
		before := func(o *EgressIP) bool { return w.destinationsOverlap(o, e, f) }
		if w.destinationsOverlap(e, e, f) && !slices.ContainsFunc(out, before) {
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

// Standbys are those of a pod in a family: EgressServices that have it as an endpoint and decide about such packets,
// and EgressIPs that select it and ask for addresses of the family.
func (w *View) Standbys(p *Pod, f Family) []Standby {
	services, selecting := w.activeServices(p, f), w.Selecting(p)
	if len(services)+len(selecting) < 2 {
		return nil
	}
	claims := w.Claims(p, w.PrimaryNetwork(p.Namespace), f)
	before := claims
	if e := w.Forbids(p, f); e != nil {
		before = []Claim{e.asClaim()}
	}
	var out []Standby
	for _, s := range services {
		if !slices.Contains(claims, s.asClaim()) {
			out = append(out, Standby{s.asClaim().By, before})
		}
	}
	for _, s := range w.standbysOf(selecting, claims, f) {
		if len(s.For) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// Wanted are the claims to a pod's packets of a family in its primary network, and the EgressIPs that select it and get
// no address of the family that they ask for. Each of these has the objects that keep it from one; an EgressIP without
// a node has no such objects. In another network there are neither.
func (w *View) Wanted(p *Pod, network string, f Family) (claims []Claim, unserved []Standby) {
	if w.PrimaryNetwork(p.Namespace) != network {
		return nil, nil
	}
	claims = w.Claims(p, network, f)
	return claims, w.standbysOf(w.Selecting(p), claims, f)
}

func (w *View) standbysOf(selecting []*EgressIP, claims []Claim, f Family) []Standby {
	var out []Standby
	for _, e := range selecting {
		if e.Asks(f) && !slices.Contains(claims, e.asClaim()) {
			out = append(out, w.standbyOf(e, claims, f))
		}
	}
	return out
}

func (w *View) activeServices(p *Pod, f Family) []*EgressService {
	return slices.DeleteFunc(w.EgressServicesOf(p, f), func(s *EgressService) bool {
		return !w.EgressServiceActive(s.Key(), f)
	})
}

// standbyOf is an EgressIP that has none of the claims. The object of a claim selects the pod: where its selectors or
// its rank change, the pod has changed for its Readers. So they need not hear where its addresses go.
func (w *View) standbyOf(e *EgressIP, claims []Claim, f Family) Standby {
	s := Standby{By: e.asClaim().By}
	for _, c := range claims {
		if c.By.Kind == ref.EgressService || w.destinationsOverlap(w.egressIPs[c.By.Name], e, f) {
			s.For = append(s.For, c)
		}
	}
	return s
}
