package world

import "k8s.io/apimachinery/pkg/labels"

// pair is two EgressIPs, by name in order, or twice the same.
type pair struct{ one, other string }

func pairOf(a, b *EgressIP) pair { return pair{min(a.Name, b.Name), max(a.Name, b.Name)} }

// destinationsOverlap says whether two EgressIPs have a destination of a family in common; of an EgressIP and itself,
// whether it has any. It is kept for as long as both have their selectors. The caller has asked which EgressIPs select
// a pod. A change of this answer changes the pod (overlapAnew). A network that comes or goes does not.
func (w *View) destinationsOverlap(a, b *EgressIP, f Family) bool {
	if a.Traffic == nil && b.Traffic == nil {
		return true
	}
	p := pairOf(a, b)
	known, is := w.overlaps[p]
	if !is {
		known = w.overlapByFamily(a, b)
		w.overlaps[p] = known
	}
	return known[f]
}

// overlapByFamily is the same of both families, by what they have now.
func (w *tables) overlapByFamily(a, b *EgressIP) (by [2]bool) {
	if a.Name == b.Name {
		return w.hasNetworks(a)
	}
	one, other := w.destinationsOf(a), w.destinationsOf(b)
	for f := range by {
		by[f] = one[f].Overlaps(other[f])
	}
	return by
}

// hasNetworks says whether an EgressIP's selector of traffic selects any that count, by family.
func (w *tables) hasNetworks(e *EgressIP) (by [2]bool) {
	counts, _ := w.countedTraffic(e)
	for _, t := range counts {
		if n := len(t.Networks); n > 0 { // in order, so that those of a family are together
			by[FamilyOf(t.Networks[0].Addr())] = true
			by[FamilyOf(t.Networks[n-1].Addr())] = true
		}
	}
	return by
}

// overlapAnew follows a change of EgressIPs' destinations: where two of them overlap now that did not, or no longer,
// pods that both select may be claimed by others than before.
func (w *World) overlapAnew(concerned map[string]*EgressIP) {
	var turned []pair
	for p, before := range w.overlaps {
		if concerned[p.one] == nil && concerned[p.other] == nil {
			continue
		}
		if now := w.overlapByFamily(w.egressIPs[p.one], w.egressIPs[p.other]); now != before {
			w.overlaps[p] = now
			turned = append(turned, p)
		}
	}
	if len(turned) == 0 {
		return
	}

	for ns, list := range w.selecting {
		selected := map[string]*EgressIP{}
		for _, e := range list {
			selected[e.Name] = e
		}
		for _, p := range turned {
			w.notePodsOfBoth(ns, selected[p.one], selected[p.other])
		}
	}
}

// notePodsOfBoth notes the pods of a namespace that two EgressIPs select there; nil selects none.
func (w *World) notePodsOfBoth(ns string, one, other *EgressIP) {
	if one == nil || other == nil {
		return
	}

	for p := range w.podsIn[ns].selectedPods(one.Pods) {
		if other.Pods.Matches(labels.Set(p.Labels)) {
			w.noteChanged(KindPod, p.Key())
		}
	}
}

// forgetOverlaps forgets an EgressIP whose selector of traffic has changed: with that, who is selected in its
// namespaces is touched.
func (w *World) forgetOverlaps(name string) {
	for p := range w.overlaps {
		if p.one == name || p.other == name {
			delete(w.overlaps, p)
		}
	}
}
