package world

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// EgressIPs lists all EgressIPs by name.
func (w *View) EgressIPs() []string {
	w.noteRead(KindEgressIPs, "")
	return slices.Sorted(maps.Keys(w.egressIPs))
}

// EgressIP is an EgressIP, or nil.
func (w *View) EgressIP(name string) *EgressIP {
	w.noteRead(KindEgressIP, name)
	return w.egressIPs[name]
}

// Binds says whether its pods leave with an address of the EgressIP or not at all.
func (e *EgressIP) Binds(f Family) bool {
	return e.InForce[f] || e.DropWhenUnassigned && e.Asks(f)
}

// Active says whether the EgressIP decides about its pods' packets of a family: it is assigned, or was in force and has
// not been given up.
func (e *EgressIP) Active(f Family) bool {
	return e.Binds(f) || e.HasItems(f)
}

// SetEgressIP adds or replaces an EgressIP.
func (w *World) SetEgressIP(e *EgressIP) {
	Set(w, KindEgressIP, e.orBefore(w.egressIPs[e.Name]))
}

// DelEgressIP removes an EgressIP.
func (w *World) DelEgressIP(name string) { Del[EgressIP](w, KindEgressIP, name) }

// egressIPChanged keeps who is selected in each namespace, and which addresses have a node.
func (w *World) egressIPChanged(old, now *EgressIP) {
	w.noteStatusAddresses(old, now)
	w.updateNaming(cmp.Or(old, now).Name, old.placementOrNone(), now.placementOrNone())
	w.noteSlots("", old.ownSlots(), now.ownSlots())
	w.noteMarked(old, now)
	w.reselectTraffic(old, now)
	alike := old != nil && now != nil && old.servesAlike(now)
	for name, ns := range w.namespaces {
		var is *EgressIP // now, where it selects the namespace
		if now != nil && now.Namespaces.Matches(labels.Set(ns.Labels)) {
			is = now
		}
		was := w.selectIn(name, cmp.Or(now, old).Name, is)
		w.noteSlots(name, was.ownSlots(), is.ownSlots())
		if was != is && !(was != nil && is != nil && alike) {
			w.noteClaimsIn(name, was, is)
		}
	}
}

// noteClaimsIn are the pods of a namespace that an EgressIP selected there as one object, or does as another; nil
// stands for no selection.
func (w *World) noteClaimsIn(ns string, was, is *EgressIP) {
	switch {
	case was == nil:
		w.notePodsSelected(ns, is.Pods)
		return
	case is == nil || sameSelector(was.Pods, is.Pods):
		w.notePodsSelected(ns, was.Pods)
		return
	}
	w.notePodsSelected(ns, was.Pods, is.Pods)
}

// servesAlike says that e serves the pods of a namespace exactly where it did as o.
func (e *EgressIP) servesAlike(o *EgressIP) bool {
	if ByPrecedence(e, o) != 0 {
		return false
	}
	for _, f := range [...]Family{V4, V6} {
		if e.Active(f) != o.Active(f) || e.Binds(f) != o.Binds(f) || e.Asks(f) != o.Asks(f) {
			return false
		}
	}
	return e.Pods.String() == o.Pods.String() && sameSelector(e.Traffic, o.Traffic) &&
		e.NeverOverridden == o.NeverOverridden && e.TrafficUnknown == o.TrafficUnknown
}

// Asks says whether the EgressIP requests an address of a family.
func (e *EgressIP) Asks(f Family) bool {
	return slices.ContainsFunc(e.IPs, func(a netip.Addr) bool { return FamilyOf(a) == f })
}

func (e *EgressIP) sameSpec(o *EgressIP) bool {
	return e.UID == o.UID && e.Created.Equal(o.Created) && e.Generation == o.Generation && slices.Equal(e.IPs, o.IPs) &&
		e.Namespaces.String() == o.Namespaces.String() && e.Pods.String() == o.Pods.String() &&
		e.Nodes.sameSelector(o.Nodes) && sameSelector(e.Traffic, o.Traffic) && e.TrafficProblem == o.TrafficProblem &&
		e.TrafficUnknown == o.TrafficUnknown && e.Placement.Same(&o.Placement) &&
		e.DropWhenUnassigned == o.DropWhenUnassigned && e.NeverOverridden == o.NeverOverridden &&
		e.UnassignedProblem == o.UnassignedProblem && e.Mark == o.Mark && e.MarkProblem == o.MarkProblem &&
		slices.Equal(e.Problems, o.Problems)
}

// selectIn updates one namespace's list for one EgressIP, or removes it from the list if it is nil, and returns the
// list's previous entry.
func (w *World) selectIn(ns, name string, e *EgressIP) (was *EgressIP) {
	list := w.selecting[ns]
	i := slices.IndexFunc(list, func(o *EgressIP) bool { return o.Name == name })
	if i >= 0 {
		was = list[i]
	}
	switch {
	case was == nil && e == nil:
		return nil
	case was == nil || e == nil || ByPrecedence(was, e) != 0:
		w.selecting[ns] = replaceEntry(list, i, e)
	default:
		list[i] = e // the same place
		if sameSelector(was.Pods, e.Pods) {
			return was
		}
	}
	delete(w.demands, ns)
	return was
}

// replaceEntry is list without its i-th entry and, unless it is nil, with e at its place.
func replaceEntry(list []*EgressIP, i int, e *EgressIP) []*EgressIP {
	list = slices.Clone(list)
	if i >= 0 {
		list = slices.Delete(list, i, i+1)
	}
	if e != nil {
		at, _ := slices.BinarySearchFunc(list, e, ByPrecedence)
		list = slices.Insert(list, at, e)
	}
	return list
}

// reselectNamespace makes a namespace's list again, after its labels changed.
func (w *World) reselectNamespace(ns string) {
	before := w.selecting[ns]
	var list []*EgressIP
	if n := w.namespaces[ns]; n != nil {
		for _, e := range w.egressIPs {
			if e.Namespaces.Matches(labels.Set(n.Labels)) {
				list = append(list, e)
			}
		}
	}
	slices.SortFunc(list, ByPrecedence)
	delete(w.demands, ns)
	if w.selecting[ns] = list; len(list) == 0 {
		delete(w.selecting, ns)
	}
	w.noteSlots(ns, mostSlots(slices.Values(before)), mostSlots(slices.Values(list)))
	w.notePodsSelected(ns, append(selectorsBeside(before, list), selectorsBeside(list, before)...)...)
}

// selectorsBeside are the selectors of pods of those EgressIPs of a list that are not in another.
func selectorsBeside(list, other []*EgressIP) []labels.Selector {
	there := map[*EgressIP]bool{}
	for _, e := range other {
		there[e] = true
	}
	var out []labels.Selector
	for _, e := range list {
		if !there[e] {
			out = append(out, e.Pods)
		}
	}
	return out
}

// placementOrNone is where the addresses are; nowhere, of nil.
func (e *EgressIP) placementOrNone() Placement {
	if e == nil {
		return Placement{}
	}
	return e.Placement
}

// ByPrecedence is the one order of precedence: creation, then name.
func ByPrecedence(a, b *EgressIP) int {
	if c := a.Created.Compare(b.Created); c != 0 {
		return c
	}
	return cmp.Compare(a.Name, b.Name)
}
