package egressip

import (
	"slices"
	"time"

	"github.com/egret-net/egret/internal/world"
)

// exchange is how long an object stays in force when an older one has the addresses that it asks for. Two that exchange
// theirs are written one after the other: in between one of them has lost what it had, and has not been told yet what
// it gets.
const exchange = 10 * time.Second

// exchangedBy is when that time ends in a family; zero: it does not run. It counts from when condition Assigned turned
// False.
func (a *assigner) exchangedBy(o *object, f world.Family) time.Time {
	lost := func(p place) bool { return world.FamilyOf(p.ip) == f && a.owner[p.ip] != o }
	if !o.e.InForce[f] || !slices.ContainsFunc(o.places, lost) {
		return time.Time{}
	}
	since := a.Now
	if c := condition(o.e, ConditionAssigned); c.Status == "False" {
		since = c.Since
	}
	until := since.Add(exchange)
	if over, never := !until.After(a.Now), until.After(a.Now.Add(2*exchange)); over || never {
		return time.Time{} // never: the clock was set back, and the time would not end
	}
	return until
}
