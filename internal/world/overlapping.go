package world

// pair is two EgressIPs, by name in order, or twice the same.
type pair struct{ one, other string }

func pairOf(a, b *EgressIP) pair { return pair{min(a.Name, b.Name), max(a.Name, b.Name)} }

// destinationsOverlap says whether two EgressIPs have a destination of a family in common; of an EgressIP and itself,
// whether it has any. The caller has asked which EgressIPs select a pod. A network that comes or goes changes nothing
// for a reader as long as the answer stays.
func (w *View) destinationsOverlap(a, b *EgressIP, f Family) bool {
	if a.Traffic == nil && b.Traffic == nil {
		return true
	}
	return w.overlap.valueOf(w, pairOf(a, b))[f]
}

// derivesOverlap is by two EgressIPs and family.
func derivesOverlap() Derived[pair, [2]bool] {
	return Derived[pair, [2]bool]{
		of: func(v *View, p pair) (by [2]bool) {
			if p.one == p.other {
				v.noteRead(KindDestinations, p.one)
				return v.hasNetworks(v.egressIPs[p.one])
			}
			for f := range by {
				by[f] = v.Destinations(p.one, Family(f)).Overlaps(v.Destinations(p.other, Family(f)))
			}
			return by
		},
		exists: func(w *View, p pair) bool { return w.egressIPs[p.one] != nil && w.egressIPs[p.other] != nil },
	}
}

// hasNetworks says whether an EgressIP's selector of traffic selects any that count, by family.
func (w *View) hasNetworks(e *EgressIP) (by [2]bool) {
	counts, _ := w.countedTraffic(e)
	for _, t := range counts {
		if n := len(t.Networks); n > 0 { // in order, so that those of a family are together
			by[FamilyOf(t.Networks[0].Addr())] = true
			by[FamilyOf(t.Networks[n-1].Addr())] = true
		}
	}
	return by
}
