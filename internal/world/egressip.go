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
	w.saw(KindEgressIPs, "")
	return slices.Sorted(maps.Keys(w.egressIPs))
}

// EgressIP is an EgressIP, or nil.
func (w *View) EgressIP(name string) *EgressIP {
	w.saw(KindEgressIP, name)
	return w.egressIPs[name]
}

// binds says whether its pods leave with an address of the EgressIP or not at all.
func (e *EgressIP) binds(f Family) bool { return e.InForce[f] || e.DropWhenUnassigned && e.Asks(f) }

// Active says whether the EgressIP decides about its pods' packets of a family: it is assigned, or was in force and has
// not been given up.
func (e *EgressIP) Active(f Family) bool {
	return e.binds(f) || e.HasItems(f)
}

// HasItems says whether any address of a family is assigned.
func (e *EgressIP) HasItems(f Family) bool {
	return slices.ContainsFunc(e.Items, func(a Assignment) bool { return FamilyOf(a.IP) == f })
}

// Names says whether the status names a node for an address: as the one to hold it, or as one that is leaving.
func (e *EgressIP) Names(node string, ip netip.Addr) bool {
	return slices.Contains(e.Items, Assignment{node, ip}) || e.Leaves(node, ip)
}

// Leaves says whether a node is a former holder of an address that is to go on translating to it.
func (e *EgressIP) Leaves(node string, ip netip.Addr) bool {
	return slices.ContainsFunc(e.Leaving, func(l Leaving) bool { return l.Node == node && l.IP == ip })
}

// Assignee is the node that is to hold an address, or "".
func (e *EgressIP) Assignee(ip netip.Addr) string {
	for _, a := range e.Items {
		if a.IP == ip {
			return a.Node
		}
	}
	return ""
}

// SelectedPods are the pods that an EgressIP selects, served by it or not, sorted by key.
func (w *World) SelectedPods(e *EgressIP) []*Pod {
	var out []*Pod
	for ns, list := range w.selecting {
		if !slices.Contains(list, e) {
			continue
		}
		for _, p := range w.podsIn[ns] {
			if !p.HostNetwork && !p.Completed && e.Pods.Matches(labels.Set(p.Labels)) {
				out = append(out, p)
			}
		}
	}
	slices.SortFunc(out, func(a, b *Pod) int { return cmp.Compare(a.Key(), b.Key()) })
	return out
}

// SetEgressIP adds or replaces an EgressIP.
func (w *World) SetEgressIP(e *EgressIP) []Touch {
	return Set(w, KindEgressIP, e.orBefore(w.egressIPs[e.Name]))
}

// DelEgressIP removes an EgressIP.
func (w *World) DelEgressIP(name string) []Touch { return Del[EgressIP](w, KindEgressIP, name) }

// egressIPChanged keeps who is selected in each namespace, and which addresses have a node.
func (w *World) egressIPChanged(old, now *EgressIP) []Touch {
	t := slices.Concat(w.place(old, now), slotsTouched(old, now), w.reselectTraffic(old, now))
	if now == nil {
		for ns := range w.namespaces {
			t = append(t, w.selectIn(ns, old.Name, nil, false)...)
		}
		return t
	}
	alike := old != nil && old.servesAlike(now)
	for name, ns := range w.namespaces {
		selected := now.Namespaces.Matches(labels.Set(ns.Labels))
		moved := w.selectIn(name, now.Name, now, selected)
		if selected && !alike && len(moved) == 0 {
			moved = []Touch{{KindEgressIPsIn, name}}
		}
		t = append(t, moved...)
	}
	return t
}

// servesAlike says that e serves the pods of a namespace exactly where it did as o.
func (e *EgressIP) servesAlike(o *EgressIP) bool {
	for _, f := range [...]Family{V4, V6} {
		if e.Active(f) != o.Active(f) || e.binds(f) != o.binds(f) || e.Asks(f) != o.Asks(f) {
			return false
		}
	}
	return e.Pods.String() == o.Pods.String() && sameSelector(e.Traffic, o.Traffic) &&
		e.TrafficUnknown == o.TrafficUnknown
}

// Asks says whether the EgressIP requests an address of a family.
func (e *EgressIP) Asks(f Family) bool {
	return slices.ContainsFunc(e.IPs, func(a netip.Addr) bool { return FamilyOf(a) == f })
}

func (e *EgressIP) same(o *EgressIP) bool {
	return e.UID == o.UID && e.Created.Equal(o.Created) && e.Generation == o.Generation && slices.Equal(e.IPs, o.IPs) &&
		e.Namespaces.String() == o.Namespaces.String() && e.Pods.String() == o.Pods.String() &&
		e.Nodes.same(o.Nodes) && sameSelector(e.Traffic, o.Traffic) && e.TrafficProblem == o.TrafficProblem &&
		e.TrafficUnknown == o.TrafficUnknown && slices.Equal(e.Items, o.Items) &&
		slices.EqualFunc(e.Leaving, o.Leaving, Leaving.Same) &&
		e.InForce == o.InForce && e.DropWhenUnassigned == o.DropWhenUnassigned && slices.Equal(e.Problems, o.Problems)
}

// selectIn brings one namespace's list up to date for one EgressIP.
func (w *World) selectIn(ns, name string, e *EgressIP, selected bool) []Touch {
	list := w.selecting[ns]
	i := slices.IndexFunc(list, func(o *EgressIP) bool { return o.Name == name })
	if i < 0 && !selected {
		return nil
	}
	if i >= 0 && selected && ByPrecedence(list[i], e) == 0 {
		if list[i].Pods.String() != e.Pods.String() {
			delete(w.demands, ns)
		}
		list[i] = e // the same place: readers of the list see the same objects' names
		return nil
	}
	delete(w.demands, ns)
	w.selecting[ns] = placed(list, i, e, selected)
	return []Touch{{KindEgressIPsIn, ns}}
}

// placed is list without its i-th entry and, when selected, with e at its place.
func placed(list []*EgressIP, i int, e *EgressIP, selected bool) []*EgressIP {
	list = slices.Clone(list)
	if i >= 0 {
		list = slices.Delete(list, i, i+1)
	}
	if selected {
		at, _ := slices.BinarySearchFunc(list, e, ByPrecedence)
		list = slices.Insert(list, at, e)
	}
	return list
}

// reselect makes a namespace's list anew, after its labels changed.
func (w *World) reselect(ns string) []Touch {
	n := w.namespaces[ns]
	delete(w.demands, ns)
	if n == nil {
		delete(w.selecting, ns)
		return []Touch{{KindEgressIPsIn, ns}}
	}
	var list []*EgressIP
	for _, e := range w.egressIPs {
		if e.Namespaces.Matches(labels.Set(n.Labels)) {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, ByPrecedence)
	if slices.Equal(list, w.selecting[ns]) {
		return nil
	}
	w.selecting[ns] = list
	return []Touch{{KindEgressIPsIn, ns}}
}
