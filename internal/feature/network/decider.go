package network

import (
	"maps"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/networks"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Decider decides about requests and definitions. All of them are one decision: which of two has a name, a number or a
// namespace follows from both, and there are few.
type Decider struct {
	// reader tells of what the last decision read. Most changes in a cluster are of pods: a decision reads pods only of
	// namespaces that are to lose their network.
	reader *world.Reader
	stale  bool
	told   decide.Told
	some   bool // whether there is anything to decide about
}

// NewDecider has decided nothing yet.
func NewDecider() *Decider {
	d := &Decider{stale: true, told: decide.Told{}}
	d.reader = world.NewReader(func() { d.stale = true })
	return d
}

// NoteChanged takes in what the reader does not tell of: namespaces that come.
func (d *Decider) NoteChanged(e world.Entry) {
	if e.Kind == world.KindNamespace && d.some {
		d.stale = true
	}
}

// Seen does nothing: no decision depends on how much has been written.
func (d *Decider) Seen(decide.View, world.Entry) time.Time { return time.Time{} }

// Decide says what requests and definitions should be, if anything that they follow from has changed.
func (d *Decider) Decide(v decide.View) (desired []decide.Desired, again time.Time) {
	if !d.stale {
		return nil, time.Time{}
	}
	d.stale = false
	c := newSituation(d.reader.Reading(v.World))
	c.judgeDefinitions()
	c.judgeRequests()
	there := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(c.definitions)) {
		there[ref.NetworkAttachmentDefinition+key] = true
		desired = append(desired, d.desiredDefinition(c, key))
	}
	for _, r := range c.requests {
		there[r.Key()] = true
		desired = append(desired, d.desiredRequest(v, c, r))
	}
	maps.DeleteFunc(d.told, func(key string, _ decide.ToldOf) bool { return !there[key] })
	d.some = len(desired) > 0
	return desired, time.Time{}
}

// desiredDefinition returns a definition as it should be. Where an administrator's does not count, an Event says why:
// nothing need be written of such a definition, so the Event waits for no write.
func (d *Decider) desiredDefinition(c *situation, key string) decide.Desired {
	o := c.definitions[key]
	one := decide.Desired{Kind: world.KindDefinition, Key: key,
		Decision: world.Decision{UID: o.UID, Status: o}}
	one.Events = d.told.Tell(ref.NetworkAttachmentDefinition+key, o.UID, false, c.refused[key])
	for i := range one.Events {
		one.Events[i].Action, one.Events[i].Happened = "Number", true
	}
	return one
}

// desiredRequest is a request with its finalizer and its condition.
func (d *Decider) desiredRequest(v decide.View, c *situation, r *networks.Request) decide.Desired {
	problems := c.problems[r]
	one := decide.Desired{Kind: r.Kind(), Key: r.Key(), Decision: world.Decision{UID: r.UID,
		Status: networks.Protection(!r.Deleting || r.Protected && c.isHeld(r))}}
	condition := world.Condition{Type: ConditionNetworkCreated, Status: "True",
		Reason: ReasonDefinitionCreated, Message: c.createdText(r)}
	if len(problems) > 0 {
		condition.Status, condition.Reason = "False", problems[0].Reason
		condition.Message = decide.Messages(problems)
	}
	if len(problems) > 0 || !r.Deleting && c.isMade(r) {
		one.Decision.Conditions = decide.Dated(r.Conditions, r.Generation, v.Now, condition)
	}
	was := decide.Condition(r.Conditions, condition.Type)
	one.Events = d.told.Tell(r.Key(), r.UID, was.Status == "False", problems)
	for i := range one.Events {
		one.Events[i].Action = "CreateNetwork"
	}
	return one
}
