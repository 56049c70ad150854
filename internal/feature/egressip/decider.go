package egressip

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/decide/patience"
	"github.com/egret-net/egret/internal/world"
)

// action is that of Events.
const action = "Assign"

// Assigner decides for every EgressIP which node hosts which of its addresses (seed egress-ip-original-proposal.md
// 4.1-4.6). It is sticky: an address stays where the object's status says it is while that node can host it, and is not
// too late. The same world has the same answer, and one that says what was decided has no Events. It recomputes only
// the decisions with a changed dependency; a property test compares it with one that remembers nothing.
type Assigner struct {
	pods      *handover.Pods
	served    *handover.Served
	patience  *patience.Patience
	turns     *handover.Turns
	exchanges Exchanges
	run       *assigner // nil: nothing was decided yet
	last      map[string]Decision
	anew      []string // decided about the last time, or found gone
	*staleness
}

// NewAssigner has decided nothing yet.
func NewAssigner(pods *handover.Pods) *Assigner {
	return &Assigner{pods: pods, served: NewServed(pods), patience: NewPatience(), turns: handover.NewTurns(),
		exchanges: Exchanges{}, last: map[string]Decision{}, staleness: newStaleness()}
}

// Last is the last decision about each EgressIP.
func (d *Assigner) Last() map[string]Decision { return d.last }

// Anew are the EgressIPs about which the last decision decided, those that are gone among them.
func (d *Assigner) Anew() []string { return d.anew }

// NoteChanged takes in what changes.
func (d *Assigner) NoteChanged(e world.Entry) {
	d.pods.NoteChanged(e)
	d.markStale(e)
	if d.run == nil {
		return
	}
	switch e.Kind {
	case world.KindHeldAt:
		_, waits := d.run.unplaced[e.Key]
		d.placing = d.placing || waits
	case world.KindOverclaims:
		d.placing = d.placing || len(d.run.unplaced) > 0
	case world.KindServiceAddress:
		ip, err := netip.ParseAddr(e.Key)
		d.placing = d.placing || err == nil && d.run.owner[ip] != nil
	}
}

// Decide says which nodes hold the addresses of EgressIPs, and how it stands with that. The oldest is written first.
func (d *Assigner) Decide(v decide.View) (desired []decide.Desired, again time.Time) {
	if d.run == nil {
		d.run = newAssigner(v.World, d.pods)
		d.markAllStale(v.World)
	}
	if d.Pass(v.Now) {
		d.markAllStale(v.World)
	}
	d.pods.Update(v.World)
	d.Take(d.served.News)
	is := func(name string) []world.Assignment { return v.PlacementOf(name).Items }
	d.patience.Look(v.World, maps.Keys(d.Objects), is, v.ShownPlacementOf, v.Now)
	d.placing = d.placing || len(d.patience.News) > 0
	d.Take(d.patience.News)
	d.run.Beside = Beside{Served: d.served, Patience: d.patience, Turns: d.turns,
		Exchanges: d.exchanges, Shown: v.ShownPlacementOf, Last: d.last, Now: v.Now}
	d.renewPlacements()
	redone := d.redoStale()
	again = d.patience.Decided(v, d.anew, func(name string) []world.Assignment { return d.last[name].Items },
		func(name string) []string { return d.last[name].Awaited })
	for _, o := range redone {
		desired = append(desired, d.desiredStatus(o.e))
	}
	return desired, decide.Earlier(decide.Earlier(again, d.turns.Next()), d.Soonest())
}

// renewPlacements looks again at what has changed, and recomputes placements if they depend on it.
func (d *Assigner) renewPlacements() {
	for name := range d.nodes {
		d.turns.See(d.run.w, name, d.run.Now)
	}
	survey := d.turns.Pass(d.run.Now)
	for name := range d.nodes {
		survey = d.run.renewNode(name) || survey
	}
	clear(d.nodes)
	for name := range d.Objects {
		d.run.renewObject(name)
	}
	if !survey && !d.placing && !d.run.pods.moved {
		return
	}
	d.placing, d.run.pods.moved = false, false
	d.run.sortObjects()
	for _, o := range d.run.placeAll(survey) {
		d.Objects[o.e.Name] = struct{}{}
	}
}

// redoStale recomputes the decisions about EgressIPs with a changed dependency, in order of precedence.
func (d *Assigner) redoStale() (redone []*object) {
	d.anew = slices.Collect(maps.Keys(d.Objects))
	clear(d.Objects)
	for _, name := range d.anew {
		if o := d.run.byName[name]; o != nil {
			redone = append(redone, o)
		} else {
			d.forgetEgressIP(name)
			d.exchanges.forgetEgressIP(name)
			delete(d.last, name)
		}
	}
	slices.SortFunc(redone, func(x, y *object) int { return world.ByPrecedence(x.e, y.e) })
	for _, o := range redone {
		d.run.w = d.Reading(d.run.world, o.e.Name)
		d.run.renewObject(o.e.Name) // its conditions may be others than before, too
		one := d.run.composeDecision(o)
		d.last[o.e.Name] = one
		d.noteDecision(o.e.Name, one)
	}
	d.run.w = &d.run.world.View
	return redone
}

// desiredStatus is an EgressIP as it was decided now. As long as that is not what it says, it is decided about again.
func (d *Assigner) desiredStatus(e *world.EgressIP) decide.Desired {
	one := d.last[e.Name]
	if !one.isShownBy(e) {
		d.Objects[e.Name] = struct{}{}
	}
	out := ofEgressIP(e, one.Conditions, one.Events)
	out.Decision.Status = one.Placement
	return out
}

// isShownBy says whether an EgressIP says all that was decided.
func (d Decision) isShownBy(e *world.EgressIP) bool {
	return len(d.Events) == 0 && d.Placement.Same(&e.Placement) && showsConditions(e, d.Conditions)
}

// showsConditions says whether an EgressIP has these conditions among its own.
func showsConditions(e *world.EgressIP, conditions []world.Condition) bool {
	return !slices.ContainsFunc(conditions, func(c world.Condition) bool { return !c.Same(conditionOf(e, c.Type)) })
}

// ofEgressIP is an EgressIP with decided conditions, and their Events.
func ofEgressIP(e *world.EgressIP, conditions []world.Condition, events []decide.Event) decide.Desired {
	for i := range events {
		events[i].Action = action
	}
	return decide.Desired{Kind: world.KindEgressIP, Key: e.Name, Events: events,
		Decision: world.Decision{UID: e.UID, Conditions: conditions}}
}

// uncounted is how soon to decide about one that leaves: no decision has counted the time of what was not written.
const uncounted = time.Second

// Seen begins to wait for what nodes are told by now.
func (d *Assigner) Seen(v decide.View, object world.Entry) time.Time {
	e := v.ShownEgressIP(object.Key)
	if object.Kind != world.KindEgressIP || e == nil {
		return time.Time{}
	}
	d.noteShown(e, d.run)
	again := d.patience.Seen(v.World, e.Name, &e.Placement, v.Now)
	for name := range d.waiting {
		if slices.Contains(d.last[name].WaitsFor, e.Name) {
			return v.Now
		}
	}
	if len(e.Leaving) > 0 {
		return v.Now.Add(uncounted)
	}
	return again
}
