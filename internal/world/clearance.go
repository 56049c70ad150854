package world

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/ref"
)

// Clearance is what this node knows of whether another one has followed what this one has seen. A node whose agent is
// dead goes on translating pods' addresses as it last knew them.
type Clearance struct {
	Cleared bool // it has answered since this agent started, or need not: packets may be led there
	Late    bool // it has been asked for some time, packets wait for it, and it does not answer
}

// Former says that some nodes may still translate what has an address as its source, and goes to some destinations, by
// a claim that has ended; or, where it has begun, that they may drop that.
type Former struct {
	Begun bool
	// Shared: the claim is that of another pod with the address, for as long as there are two.
	Shared bool
	By     []Claimant // these may lead packets there all the same: the claim was one's of them
	To     destinations.Set
	Nodes  []string
}

// Claimant is an object, and no other one of the same name.
type Claimant struct {
	ref.Object
	UID string
}

// ClaimantOf is the object that has a name now.
func (w *View) ClaimantOf(o ref.Object) Claimant {
	if o.Kind == ref.EgressIP {
		if e := w.EgressIP(o.Name); e != nil {
			return Claimant{o, e.UID}
		}
	} else if s := w.EgressService(o.Key()); s != nil {
		return Claimant{o, s.UID}
	}
	return Claimant{Object: o}
}

// Cleared says whether packets may be led to a node, as far as it must have followed what this one has seen. Where
// nobody follows that, as in the controller, they may.
func (w *View) Cleared(node string) bool {
	w.noteRead(KindClearance, "")
	w.noteRead(KindClearance, node)
	return !w.clearing || node == w.Self || w.clearance[node].Cleared
}

// LateToFollow says whether packets wait for a node's answer for longer than they should.
func (w *View) LateToFollow(node string) bool {
	w.noteRead(KindClearance, node)
	return w.clearance[node].Late
}

// PodAddr is an address of a pod in a network. Two networks may have pods with one address. Network is the number, by
// which nodes tell networks apart: a network that gets the number of one that has gone meets what other nodes still
// hold for that one. The default network's is 0.
type PodAddr struct {
	Network int
	IP      netip.Addr
}

// entryKey names the network only where it is not the default one.
func (a PodAddr) entryKey() string {
	if a.Network == 0 {
		return a.IP.String()
	}
	return strconv.Itoa(a.Network) + " " + a.IP.String()
}

// MayTranslate says whether a node may still translate a pod's address for an object other than the one that the
// packets go there for.
func (w *View) MayTranslate(node string, at PodAddr, object ref.Object) bool {
	w.noteRead(KindFormer, at.entryKey())
	list := w.formers[at]
	if len(list) == 0 {
		return false
	}
	var to destinations.Set
	by := w.ClaimantOf(object)
	for _, f := range list {
		if f.Begun || slices.Contains(f.By, by) || !slices.Contains(f.Nodes, node) {
			continue
		}
		if to == nil {
			to = w.ClaimedDestinations(object, FamilyOf(at.IP))
		}
		if f.To.Overlaps(to) {
			return true
		}
	}
	return false
}

// MayDrop says whether a node may not know yet that an object has a claim to what has an address as its source.
func (w *View) MayDrop(node string, at PodAddr, object ref.Object) bool {
	w.noteRead(KindFormer, at.entryKey())
	return slices.ContainsFunc(w.formers[at], func(f Former) bool {
		return f.Begun && f.By[0].Object == object && slices.Contains(f.Nodes, node)
	})
}

// IsShared reports whether two pods of this node have an address, and an object a claim to one of them.
func (w *View) IsShared(at PodAddr) bool {
	w.noteRead(KindFormer, at.entryKey())
	return slices.ContainsFunc(w.formers[at], func(f Former) bool { return f.Shared })
}

// ClaimedDestinations returns those of an object's claims to packets of a family. An object whose destinations are not
// known claims each.
func (w *View) ClaimedDestinations(object ref.Object, f Family) destinations.Set {
	if object.Kind != ref.EgressIP {
		w.noteRead(KindEgressService, object.Key())
		return destinations.Everything()
	}
	if e := w.EgressIP(object.Name); e == nil || e.TrafficUnknown {
		return destinations.Everything()
	}
	return w.Destinations(object.Name, f)
}

// BeginClearing makes what SetClearance says count.
func (w *World) BeginClearing() {
	w.clearing = true
	w.noteChanged(KindClearance, "")
}

// Clearing says whether what SetClearance says counts. It does not record, as Clearance and Formers do not.
func (w *World) Clearing() bool { return w.clearing }

// Clearance is what was last set of a node.
func (w *World) Clearance(node string) Clearance { return w.clearance[node] }

// Formers are the former claims to an address that were last set.
func (w *World) Formers(at PodAddr) []Former { return w.formers[at] }

// SetClearance replaces what is known of a node.
func (w *World) SetClearance(node string, c Clearance) {
	setFact(w, KindClearance, node, w.clearance, node, c)
}

// SetFormers replaces the former claims to an address.
func (w *World) SetFormers(at PodAddr, list []Former) {
	if len(list) == 0 && len(w.formers[at]) == 0 {
		return
	}
	if w.formers[at] = list; len(list) == 0 {
		delete(w.formers, at)
	}
	w.noteChanged(KindFormer, at.entryKey())
}
