package network

import (
	"slices"
	"strings"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// EventPortsClosed is the reason of an Event, as api/v1 documents it.
const EventPortsClosed = "PortsClosed"

// PortChecker tells the users of pods which ports stay closed on the interface in the default network. It decides
// nothing: each node closes these ports by the same Pod.
type PortChecker struct {
	decide.IgnoresChanges
	decide.Stale
	begun bool // false: no pod was checked yet
	told  decide.Told
}

// NewPortChecker has checked no pod yet.
func NewPortChecker() *PortChecker {
	return &PortChecker{Stale: decide.NewStale(), told: decide.Told{}}
}

// NoteChanged notes the pods that must be checked.
func (c *PortChecker) NoteChanged(e world.Entry) {
	if c.begun && e.Kind == world.KindPod { // the first check is of all pods
		c.Objects[e.Key] = struct{}{}
	}
}

// Decide checks the pods that changed, or whose namespace did.
func (c *PortChecker) Decide(v decide.View) (desired []decide.Desired, again time.Time) {
	if !c.begun {
		c.begun = true
		for p := range v.EachPod() {
			c.Objects[p.Key()] = struct{}{}
		}
	}
	for key := range c.Objects {
		p := v.Pod(key)
		if p == nil || len(p.PortProblems) == 0 {
			c.Forget(key)
			delete(c.told, key)
			continue
		}
		n := c.Reading(v.World, key).Namespace(p.Namespace)
		if n == nil || !n.OwnNetwork || p.HostNetwork {
			continue // all ports of such a pod are open
		}
		if events := c.newEvents(p); len(events) > 0 {
			desired = append(desired, decide.Desired{Kind: world.KindPod, Key: key,
				Decision: world.Decision{UID: p.UID}, Events: events})
		}
	}
	clear(c.Objects)
	slices.SortFunc(desired, func(a, b decide.Desired) int { return strings.Compare(a.Key, b.Key) })
	return desired, time.Time{}
}

// newEvents returns the Event about problems that the pod did not have at the last check.
func (c *PortChecker) newEvents(p *world.Pod) []decide.Event {
	var found []decide.Notice
	for _, text := range p.PortProblems {
		found = append(found, decide.Notice{Event: EventPortsClosed, Message: text,
			Finding: decide.Finding{Kind: EventPortsClosed, Detail: text}})
	}
	events := c.told.Tell(p.Key(), p.UID, false, found)
	for i := range events {
		events[i].Action, events[i].Happened = "OpenPorts", true
	}
	return events
}
