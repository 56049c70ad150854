package clearance

import (
	"maps"
	"slices"

	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/world"
)

// noteFormerState notes that nodes may know an address as that of a pod with other labels, or of one that has gone.
// These nodes can hear of an object that comes for it before this one does. Claims that were there do not wait for
// them: traffic that flows goes on, whoever is silent. noteTurns has it wait where this node hears of an object.
func (m *Machine) noteFormerState(now, old *pod) {
	for _, at := range old.addrs {
		if has := slices.Contains(now.addrs, at); has && maps.Equal(now.labels, old.labels) {
			continue
		}
		var by []world.Claimant
		for _, c := range old.claims[world.FamilyOf(at.IP)] {
			by = append(by, c.by)
		}
		m.ended = true
		m.noteEnd(at, former{by: by, to: destinations.Everything(), end: m.ends + 1, everywhere: true, unclaimed: true})
	}
}

// mostAddresses bounds how many addresses keep their former states one by one.
const mostAddresses = 4096

// forgetFormerStates forgets those of addresses that no pod has, if they are many. All addresses that come wait then.
// It looks at them again when there are twice as many as it left.
func (m *Machine) forgetFormerStates(changed map[world.PodAddr]struct{}) {
	if len(m.byAddr) < max(m.forgets, mostAddresses) {
		return
	}
	m.forgets = 2 * len(m.byAddr)
	for at, a := range m.byAddr {
		if !a.isForgettable() {
			continue
		}
		for _, f := range a.formers {
			m.fresh[at.Network] = max(m.freshFor(at.Network), f.end)
		}
		a.formers = nil
		changed[at] = struct{}{}
		m.forgets -= 2
	}
}

// isForgettable says whether no pod has an address, nor had a claim that has ended. Nobody reads of it until one comes.
func (a *address) isForgettable() bool {
	isClaim := func(f former) bool { return !f.unclaimed }
	return len(a.pods) == 0 && !slices.ContainsFunc(a.formers, isClaim)
}
