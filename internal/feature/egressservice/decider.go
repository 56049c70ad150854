// Package egressservice has the pods behind a LoadBalancer Service leave with its ingress IP, or by a network of hosts.
//
// In: the world. Out, of the decider: which node is the host of which EgressService, the labels of nodes that say so to
// load balancers, conditions and Events.
package egressservice

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/decide/patience"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// action is that of Events.
const action = "Assign"

// uncounted is how soon to decide about one that leaves: no decision has counted the time of what was not written.
const uncounted = time.Second

// Decider decides about EgressServices, and about the labels of Nodes that follow. It recomputes only the decisions
// with a changed dependency; a property test compares it with one that remembers nothing. Hosts stay where they can: a
// host is chosen for EgressServices without one, or whose host cannot go on.
type Decider struct {
	decide.Stale
	begun    bool // false: nothing was decided yet
	pods     *handover.Pods
	served   *handover.Served
	overlaps *handover.Overlaps
	backing  *backing
	patience *patience.Patience
	failed   patience.Failed
	labels   labels
	sharing  *sharing
	loads    map[string]int // hosts of how many EgressServices, by node
	last     map[string]decision
	told     decide.Told
}

// decision is what was decided about one EgressService.
type decision struct {
	world.Hosting
	labelled string   // the node that has its label; "": none
	awaited  []string // nodes that Ready waits for, and that do not say what keeps them
	events   []decide.Event
}

// NewDecider has decided nothing yet.
func NewDecider(pods *handover.Pods) *Decider {
	return &Decider{Stale: decide.NewStale(), pods: pods, served: handover.NewServed(pods, podServers),
		overlaps: handover.NewOverlaps(pods, podStandbys), backing: newBacking(pods),
		patience: patience.New(hasIngress), labels: newLabels(), sharing: newSharing(),
		loads: map[string]int{}, last: map[string]decision{}, told: decide.Told{}}
}

// NoteChanged takes in what changes.
func (d *Decider) NoteChanged(e world.Entry) {
	d.pods.NoteChanged(e)
	if !d.begun {
		return // the first decision is about everything; a controller that does not lead makes no decisions
	}
	switch e.Kind {
	case world.KindEgressService:
		d.Objects[e.Key] = struct{}{}
	case world.KindHolders, world.KindProblems:
		if ref.OfKey(e.Key).Kind == ref.EgressService {
			d.Objects[e.Key] = struct{}{}
		}
	case world.KindNodeProblem:
		d.noteReport(e.Key)
	case world.KindNode:
		d.labels.stale[e.Key] = struct{}{}
	}
}

// noteReport notes that a node says something else of itself: patience reads that, and records nothing.
func (d *Decider) noteReport(node string) {
	for key, one := range d.last {
		if slices.ContainsFunc(one.Items, func(i world.Assignment) bool { return i.Node == node }) {
			d.Objects[key] = struct{}{}
		}
	}
}

// Seen notes that an EgressService may say something else of itself.
func (d *Decider) Seen(v decide.View, object world.Entry) time.Time {
	s := world.Shown[world.EgressService](v.World, world.KindEgressService, object.Key)
	if object.Kind != world.KindEgressService || s == nil {
		return time.Time{}
	}
	d.Objects[object.Key] = struct{}{}
	again := d.patience.Seen(v.World, object.Key, &s.Placement, v.Now)
	if len(s.Leaving) > 0 {
		return v.Now.Add(uncounted)
	}
	return again
}

// Decide says which node is the host of each EgressService, and how it stands with that.
func (d *Decider) Decide(v decide.View) (desired []decide.Desired, again time.Time) {
	d.pods.Update(v.World)
	if d.Pass(v.Now) || !d.begun {
		d.begun = true
		d.markAllStale(v.World)
	}
	d.Take(d.served.News)
	d.Take(d.overlaps.News)
	d.Take(d.backing.News)
	d.reviewLateness(v)
	var anew []string
	for _, o := range d.examineStale(v) {
		one := d.composeDecision(o)
		d.keepDecision(o.s.Key(), one)
		desired = append(desired, d.desiredStatus(o.s, one, o.conditions))
		d.Note(o.s.Key(), o.again)
		anew = append(anew, o.s.Key())
	}
	desired = append(desired, d.desiredLabels(v)...)
	return desired, decide.Earlier(d.beginWaiting(v, anew), d.Soonest())
}

// reviewLateness looks at how late nodes are. If that is news, the decisions about late hosts are recomputed: another
// node may be on time now.
func (d *Decider) reviewLateness(v decide.View) {
	if d.failed = nil; len(d.Objects) == 0 && d.patience.Idle() {
		return
	}
	is := func(key string) []world.Assignment { return v.PlacementOf(key).Items }
	d.patience.Look(v.World, maps.Keys(d.Objects), is, v.ShownPlacementOf, v.Now)
	d.failed = d.patience.TooLate()
	if len(d.patience.News) > 0 {
		for claim := range d.failed {
			d.Objects[claim.Object] = struct{}{}
		}
	}
	d.Take(d.patience.News)
}

// beginWaiting begins to wait for what was decided, and returns when to decide though nothing changes.
func (d *Decider) beginWaiting(v decide.View, anew []string) (again time.Time) {
	if len(anew) == 0 && d.patience.Idle() {
		return time.Time{}
	}
	return d.patience.Decided(v, anew, func(key string) []world.Assignment { return d.last[key].Items },
		func(key string) []string { return d.last[key].awaited })
}

func (d *Decider) markAllStale(w *world.World) {
	for _, key := range w.EgressServices() {
		d.Objects[key] = struct{}{}
	}
	for _, name := range w.Nodes() {
		d.labels.stale[name] = struct{}{}
	}
}

// object is one EgressService on its way to a decision.
type object struct {
	s          *world.EgressService
	round      *handover.Round
	patience   *patience.Patience
	failed     patience.Failed
	pods       int // behind the Service
	shown      *world.EgressService
	facts      facts
	standby    handover.Standby // who decides about all of its pods; zero: not all are others'
	host       string           // the node that is chosen, world.HostAll or ""
	cause      string           // why the former host is it no longer
	items      []world.Assignment
	conditions []world.Condition
	awaited    []string
	again      time.Time
}

// examineStale looks at the EgressServices for which something has changed, in order of precedence, and finds a host
// for each: first all stay that can, then others go to the nodes with the fewest.
func (d *Decider) examineStale(v decide.View) []*object {
	if len(d.Objects) == 0 {
		return nil
	}
	var out []*object
	names, stale := v.Nodes(), d.takeStale(v.World)
	d.sharing.beginRound()
	for _, r := range stale {
		s := r.s
		o := &object{s: s, shown: world.Shown[world.EgressService](v.World, world.KindEgressService, s.Key()),
			patience: d.patience, failed: d.failed, pods: d.backing.pods[s.Key()],
			round: &handover.Round{World: v.World, W: r.w, Served: d.served, Names: names, Now: v.Now}}
		o.facts = factsOf(r.w, s, d.resourceOwners(v.World, r))
		o.keepHost()
		out = append(out, o)
	}
	for _, o := range out {
		d.countLoad(o.s.Key(), o.host)
	}
	for _, o := range out {
		if o.host == "" && o.facts.reason == "" {
			o.electHost(d.loads)
			d.countLoad(o.s.Key(), o.host)
		}
	}
	return out
}

// resourceOwners are those of what an EgressService asks for.
func (d *Decider) resourceOwners(w *world.World, r reading) owners {
	return owners{label: d.sharing.ownerOf(w, r.s, thing{label: labelOf(r.s)}),
		of: func(ip netip.Addr) string { return d.sharing.ownerOf(w, r.s, thing{ip: ip}) },
		standing: func(ip netip.Addr) string {
			self := handover.Claimant{Key: r.s.Key(), UID: r.s.UID, Made: r.s.Created}
			if h, is := handover.Standing(w, r.w, self, ip); is {
				return handover.StandingText(ip, h)
			}
			return ""
		}}
}

// reading is an EgressService that is decided about, and what its decision reads the world through.
type reading struct {
	s *world.EgressService
	w *world.View
}

// takeStale are those to be decided about, in order of precedence, with all that may have or lack something because of
// them. Those that are gone are forgotten.
func (d *Decider) takeStale(w *world.World) []reading {
	var out []reading
	queue, seen := slices.Collect(maps.Keys(d.Objects)), map[string]bool{}
	for len(queue) > 0 {
		key := queue[0]
		if queue = queue[1:]; seen[key] {
			continue
		}
		seen[key] = true
		r := reading{w.EgressService(key), d.Reading(w, key)}
		queue = append(queue, d.sharing.followRequests(key, requestedThings(r.w, key))...)
		if r.s != nil {
			out = append(out, r)
			continue
		}
		d.Stale.Forget(key)
		d.keepDecision(key, decision{})
		delete(d.last, key)
		delete(d.told, key)
	}
	clear(d.Objects)
	slices.SortFunc(out, func(a, b reading) int { return a.s.ByAge(b.s) })
	return out
}

// countLoad counts an EgressService for another host than before.
func (d *Decider) countLoad(key, host string) {
	last := d.last[key]
	if last.Host == host {
		return
	}
	d.loads[last.Host]--
	d.loads[host]++
	last.Host = host
	d.last[key] = last
}

// keepDecision notes what was decided last.
func (d *Decider) keepDecision(key string, one decision) {
	d.labels.moveLabel(key, d.last[key].labelled, one.labelled)
	d.countLoad(key, one.Host)
	d.last[key] = one
}

// composeDecision puts together what was found out about an object.
func (d *Decider) composeDecision(o *object) decision {
	var one decision
	one.Host, one.Items = o.host, o.items
	one.Given = handover.Given(&o.s.Placement, assignedSince(o.s.Host, o.s.Items), assignedSince(o.host, o.items),
		o.round.Now)
	one.Leaving, o.again = o.leavingHosts()
	for _, f := range families {
		one.InForce[f] = o.inForce(f, one.Placement)
	}
	one.labelled = o.labelledNode(one.Placement)
	o.standby, _ = d.standbyOf(o.round.W, o.s)
	assigned := o.assignedCondition()
	ready, problems := o.readyCondition(assigned)
	overlapped, news := d.overlapCondition(o.round.W, o.s)
	lacks := o.fallbackCondition(one.Placement)
	o.conditions = decide.Dated(o.s.Conditions, o.s.Generation, o.round.Now, assigned, ready, overlapped, lacks)
	one.awaited = o.awaited
	was := decide.Condition(o.s.Conditions, ConditionReady)
	shown := was.Status == "False" && was.Generation == o.s.Generation
	problems = append(problems, o.unreadNotices()...)
	one.events = append(o.moveEvents(), d.told.Tell(o.s.Key(), o.s.UID, shown, problems)...)
	one.events = slices.Concat(one.events, news, decide.FallsBack(o.s.Conditions, lacks))
	return one
}

// desiredStatus is an EgressService as it was decided now. As long as that is not what it says, it is decided about
// again.
func (d *Decider) desiredStatus(s *world.EgressService, one decision, conditions []world.Condition) decide.Desired {
	lacks := func(c world.Condition) bool { return !c.Same(decide.Condition(s.Conditions, c.Type)) }
	if len(one.events) > 0 || s.Host != one.Host || !s.Placement.Same(&one.Placement) ||
		slices.ContainsFunc(conditions, lacks) {
		d.Objects[s.Key()] = struct{}{}
	}
	for i := range one.events {
		one.events[i].Action = action
	}
	return decide.Desired{Kind: world.KindEgressService, Key: s.Key(), Events: one.events,
		Decision: world.Decision{UID: s.UID, Status: one.Hosting, Conditions: conditions}}
}
