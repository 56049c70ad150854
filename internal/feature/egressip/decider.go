package egressip

import (
	"slices"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// action is that of Events.
const action = "Assign"

// Assigner decides about EgressIPs: what Assign says, with what nodes took too long for.
type Assigner struct {
	served   *Served
	patience *Patience
	last     map[string]Decision
}

// NewAssigner has decided nothing yet.
func NewAssigner() *Assigner { return &Assigner{served: NewServed(), patience: NewPatience()} }

// Last are the decisions of the last time, by EgressIP.
func (d *Assigner) Last() map[string]Decision { return d.last }

// Touched tells of all that changes.
func (d *Assigner) Touched(touched []world.Touch) { d.served.Touch(touched) }

// Decide says which nodes hold the addresses of EgressIPs, and how it stands with that. The oldest is written first.
func (d *Assigner) Decide(v decide.View) (desired []decide.Desired, again time.Time) {
	d.served.Update(v.World)
	d.patience.Look(v.World, ItemsOf, v.ShownEgressIP, v.Now)
	d.last = Assign(v.World, d.served, v.ShownEgressIP, v.Now)
	decided := func(e *world.EgressIP) []world.Assignment { return d.last[e.Name].Items }
	_, again = d.patience.Look(v.World, decided, v.ShownEgressIP, v.Now) // of what was taken away just now, too
	changed, next := d.patience.Await(v.World, d.last, v.Now)
	if again = decide.Earlier(again, next); len(changed) > 0 {
		again = v.Now
	}
	for e := range v.EachEgressIP() {
		one := d.last[e.Name]
		again = decide.Earlier(again, one.Again)
		should := ofEgressIP(v, e, one.Conditions, one.Events)
		should.Decision.Status = world.Placement{Items: one.Items, Leaving: one.Leaving, InForce: one.InForce}
		desired = append(desired, should)
	}
	return desired, again
}

// ofEgressIP is an EgressIP with conditions that were decided, and what is told of them.
func ofEgressIP(v decide.View, e *world.EgressIP, conditions []world.Condition, events []decide.Event) decide.Desired {
	for i := range events {
		events[i].Action = action
	}
	return decide.Desired{Kind: world.KindEgressIP, Key: e.Name, Events: events, Decision: world.Decision{
		UID: e.UID, Conditions: decide.Dated(e.Conditions, e.Generation, v.Now, conditions...)}}
}

// uncounted is how soon to decide about one that leaves: no decision has counted the time of what was not written.
const uncounted = time.Second

// Seen begins to wait for what nodes are told by now.
func (d *Assigner) Seen(v decide.View, object world.Touch) time.Time {
	e := v.ShownEgressIP(object.Key)
	if object.Kind != world.KindEgressIP || e == nil {
		return time.Time{}
	}
	again := d.patience.Seen(v.World, e, v.Now)
	for _, one := range d.last {
		if slices.Contains(one.WaitsFor, e.Name) {
			return v.Now
		}
	}
	if len(e.Leaving) > 0 {
		return v.Now.Add(uncounted)
	}
	return again
}

// Forget takes back what was put into a world.
func (d *Assigner) Forget(w *world.World) { d.patience.Forget(w) }

// Overlapper decides one condition of EgressIPs: whether they stand by for pods, as it is when all are assigned.
type Overlapper struct {
	decide.Deaf
	*Overlaps
}

// NewOverlapper has decided nothing yet.
func NewOverlapper() *Overlapper { return &Overlapper{Overlaps: NewOverlaps()} }

// Touched tells of all that changes.
func (d *Overlapper) Touched(touched []world.Touch) { d.Touch(touched) }

// Decide says which EgressIPs stand by.
func (d *Overlapper) Decide(v decide.View) (desired []decide.Desired, again time.Time) {
	d.Update(v.World)
	for e := range v.EachEgressIP() {
		c, events := d.Condition(e)
		desired = append(desired, ofEgressIP(v, e, []world.Condition{c}, events))
	}
	return desired, time.Time{}
}
