package egressip

import (
	"slices"
	"time"

	"github.com/egret-net/egret/internal/world"
)

// exchange is how long an object stays in force when older ones have the addresses that it asks for. Two that exchange
// theirs are written one after the other: in between one of them has lost what it had, and has not been told yet what
// it gets.
const exchange = 10 * time.Second

// Exchanges are since when EgressIPs have lost the last address of a family to older ones. Another leader begins to
// count again.
type Exchanges map[lostAll]time.Time

type lostAll struct {
	egressIP string
	family   world.Family
}

// exchangedBy is when that time ends in a family; zero: it does not run.
func (a *assigner) exchangedBy(o *object, items []world.Assignment, f world.Family) time.Time {
	key := lostAll{o.e.Name, f}
	lost := func(p place) bool { return world.FamilyOf(p.ip) == f && a.owner[p.ip] != o }
	if hasFamily(items, f) || !slices.ContainsFunc(o.places, lost) {
		delete(a.Exchanges, key)
		return time.Time{}
	}
	if !o.e.InForce[f] {
		return time.Time{}
	}
	since, begun := a.Exchanges[key]
	if !begun || since.After(a.Now) { // the clock was set back
		since = a.Now
		a.Exchanges[key] = since
	}
	if until := since.Add(exchange); until.After(a.Now) {
		return until
	}
	return time.Time{}
}

// forgetEgressIP forgets an EgressIP that is gone.
func (e Exchanges) forgetEgressIP(egressIP string) {
	delete(e, lostAll{egressIP, world.V4})
	delete(e, lostAll{egressIP, world.V6})
}
