// Package patience measures how long nodes do not do what objects' statuses ask of them: hold an address, or lead their
// pods there.
//
// In: decisions about objects and their state in the API, reports of nodes, and the time. Out: which nodes are too late
// with which address, for a decider to try others, and the words about that.
package patience

import (
	"iter"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// How long a node may take to hold what it is assigned. A healthy one takes some tens of milliseconds.
const (
	lateAfter    = 5 * time.Second  // then people are told
	tooLateAfter = 10 * time.Second // then another node is chosen, if there is one
	// perAddress is added for each address that the node is waited for at the same time, half of it before people are
	// told: OVN 25.03 takes 2.2 ms a NAT row and policy where nothing else runs, and confirms all of them at once.
	// Without it, many addresses of a dead node would wander from node to node.
	perAddress = 10 * time.Millisecond
	// mostAddresses is how many count.
	mostAddresses = 5000
	// forgivenAfter is when a node that was too late may be given something new again though others can take it. It
	// doubles with each time that it was too late again with the same address, up to mostForgiven: nodes of which none
	// can hold an address do not hand it round and round.
	forgivenAfter = 5 * time.Minute
	mostForgiven  = 40 * time.Minute
)

// Patience measures how long nodes do not do what objects of one kind ask of them, by the controller's clock. The
// result is an input of a decision next to the world, and is written nowhere: another leader begins to measure again.
type Patience struct {
	// News are the objects, by key, of which it says something else than before.
	News     map[string]struct{}
	asks     Asks
	attempts map[assignedTo]*attempt
	steering map[podsOf]*silence
	awaited  map[string][]assignedTo // by object: addresses that are assigned, as the API shows it, and not held
	specs    map[string]spec         // by object: the steps that nodes are waited for
}

// Asks says whether there is an object, and an address is one that it asks nodes to hold.
type Asks func(w *world.World, object string, ip netip.Addr) bool

// assignedTo is an address of an object on a node.
type assignedTo struct {
	claim world.EgressAddress
	node  string
}

// attempt is what is known of a node that does not hold an address which it is assigned, or did not when it was.
type attempt struct {
	since    time.Time // when the API showed that it is assigned; zero: it is not any more
	among    int       // the largest number of addresses that the node was waited for in the meantime
	failures int       // how often it was too late
	left     time.Time // when the address was taken from it after that
	how      Lateness
	why      string // it was too late, by its own word; "": it says nothing
	refuses  bool   // it says what keeps it
	excused  bool   // the clock began again after its refusal
}

// Lateness is how long a node has not held an address that it is assigned.
type Lateness uint8

const (
	OnTime  Lateness = iota // it holds the address, or has not had it for long
	Late                    // longer than a healthy node takes
	TooLate                 // another node is to try
)

// New has seen nothing yet.
func New(asks Asks) *Patience {
	return &Patience{News: map[string]struct{}{}, asks: asks, attempts: map[assignedTo]*attempt{},
		steering: map[podsOf]*silence{}, awaited: map[string][]assignedTo{}, specs: map[string]spec{}}
}

// Of is how late a node is with an address of an object.
func (p *Patience) Of(object string, i world.Assignment) Lateness {
	if t := p.attempts[assignedTo{world.EgressAddress{Object: object, IP: i.IP}, i.Node}]; t != nil {
		return t.how
	}
	return OnTime
}

// Failed are the nodes that are too late, by the address that they are too late with, and what they said of it then
// ("": nothing).
type Failed map[world.EgressAddress]map[string]string

// Nodes are those that are too late with any address: they are given nothing that another can take.
func (f Failed) Nodes() map[string]bool {
	out := map[string]bool{}
	for _, nodes := range f {
		for node := range nodes {
			out[node] = true
		}
	}
	return out
}

// TooLate are all nodes that are.
func (p *Patience) TooLate() Failed {
	out := Failed{}
	for a, t := range p.attempts {
		if t.how != TooLate {
			continue
		}
		if out[a.claim] == nil {
			out[a.claim] = map[string]string{}
		}
		out[a.claim][a.node] = t.why
	}
	return out
}

// Items are which nodes are to hold an object's addresses, as it was decided.
type Items func(object string) []world.Assignment

// Shown is an object's status as the API shows it, and so as nodes can know it. It is never nil of an object that there
// is.
type Shown func(object string) *world.Placement

// Look compares what is assigned with what is held, of the objects for which any of that may have changed since it was
// last called. It returns when to look again though nothing changes; zero: not. Of what was decided and is not written
// yet no node knows: none is waited for. Decided are a decision's items, of which the world may not have all yet.
func (p *Patience) Look(w *world.World, objects iter.Seq[string], decided Items, shown Shown,
	now time.Time) (again time.Time) {
	for object := range objects {
		delete(p.awaited, object)
		if w.PlacementOf(object) != nil {
			p.compareStatus(w, object, decided(object), shown(object))
		} else {
			delete(p.specs, object)
		}
	}
	is := p.beginWaiting(maps.Values(p.awaited), now)
	for a, t := range p.attempts {
		if is[a] {
			again = decide.Earlier(again, p.judgeAttempt(w, a, t, now))
		} else {
			again = decide.Earlier(again, p.judgeFormer(w, a, t, now))
		}
	}
	return again
}

// Decided begins to wait for what was decided about some objects: for holders, and for the nodes that are awaited to
// steer to them. It returns when to decide though nothing changes; zero: not.
func (p *Patience) Decided(v decide.View, objects []string, items Items,
	awaited func(object string) []string) time.Time {
	again := p.Look(v.World, slices.Values(objects), items, v.ShownPlacementOf, v.Now)
	changed, next := p.Await(awaited, slices.Values(objects), v.Now)
	if changed {
		return v.Now
	}
	return decide.Earlier(again, next)
}

// Seen begins to wait for what the API shows of an object from now on. It returns when to Look though nothing changes;
// zero: not.
func (p *Patience) Seen(w *world.World, object string, shown *world.Placement, now time.Time) (again time.Time) {
	p.compareStatus(w, object, w.PlacementOf(object).Items, shown)
	if len(p.beginWaiting(slices.Values([][]assignedTo{p.awaited[object]}), now)) > 0 {
		return now.Add(lateAfter)
	}
	return time.Time{}
}

// Idle says whether it waits for nothing, and remembers nothing.
func (p *Patience) Idle() bool {
	return len(p.attempts) == 0 && len(p.awaited) == 0 && len(p.steering) == 0 && len(p.News) == 0
}

// Forget drops the steps that nodes are waited for: all objects must be looked at.
func (p *Patience) Forget() { clear(p.awaited) }

// compareStatus notes what an object's status assigns as decided and as written, and the node does not hold. It forgets
// what the node holds, and how late nodes were with another spec.
func (p *Patience) compareStatus(w *world.World, object string, items []world.Assignment, shown *world.Placement) {
	p.resetForSpec(object, specOf(w, object))
	var awaited []assignedTo
	for _, i := range items {
		a := assignedTo{world.EgressAddress{Object: object, IP: i.IP}, i.Node}
		switch {
		case w.Holds(i.Node, object, i.IP) && !lacksNetwork(w, i.Node, object):
			p.forgetAttempt(a)
		case slices.Contains(shown.Items, i):
			awaited = append(awaited, a)
			p.resetAttempt(a, w.Problem(i.Node, object) != "")
		}
	}
	if p.awaited[object] = awaited; len(awaited) == 0 {
		delete(p.awaited, object)
	}
}

// lacksNetwork says whether a node that holds an address does not send by the network that the object names: it may
// stay if no other node can have the address, and is waited for as one that does not hold it.
func lacksNetwork(w *world.World, node, object string) bool {
	text, reason := w.ProblemReason(node, object)
	return reason == world.ReasonUnknownNetwork && text != w.Problem(node, "")
}

// resetForSpec begins again with an object whose spec changed.
func (p *Patience) resetForSpec(object string, now spec) {
	if was, known := p.specs[object]; known && was != now {
		for a := range p.attempts {
			if a.claim.Object == object {
				p.forgetAttempt(a)
			}
		}
	}
	p.specs[object] = now
}

// spec is that of one object: a recreated object of the same name begins with generation 1 again.
type spec struct {
	uid        string
	generation int64
}

func specOf(w *world.World, object string) spec {
	if s := w.EgressService(object); s != nil {
		return spec{s.UID, s.Generation}
	}
	if e := w.EgressIP(object); e != nil {
		return spec{e.UID, e.Generation}
	}
	return spec{}
}

// resetAttempt begins again with a node that no longer reports a hindrance: it has had no time yet to do what it could
// not do before. It does so once: a node that says so now and then is to hold the address at last, or another node is.
func (p *Patience) resetAttempt(a assignedTo, refuses bool) {
	t := p.attempts[a]
	if t == nil {
		t = &attempt{}
		p.attempts[a] = t
	}
	if t.refuses && !refuses && !t.excused {
		p.setLateness(a, t, OnTime, "")
		t.since, t.excused = time.Time{}, true
	}
	t.refuses = refuses
}

// beginWaiting notes what nodes are waited for from now on, and returns all that they are waited for.
func (p *Patience) beginWaiting(awaited iter.Seq[[]assignedTo], now time.Time) map[assignedTo]bool {
	is, among := map[assignedTo]bool{}, map[string]int{}
	for list := range awaited {
		for _, a := range list {
			is[a] = true
			among[a.node]++
		}
	}
	for a := range is {
		t := p.attempts[a]
		if t == nil {
			t = &attempt{}
			p.attempts[a] = t
		}
		if t.since.IsZero() {
			t.since, t.among = now, 0
		}
		t.among = max(t.among, among[a.node])
	}
	return is
}

// setLateness has a node be so late with an address.
func (p *Patience) setLateness(a assignedTo, t *attempt, how Lateness, why string) {
	if t.how != how || t.why != why {
		p.News[a.claim.Object] = struct{}{}
	}
	t.how, t.why = how, why
}

// forgetAttempt no longer knows of a node and an address.
func (p *Patience) forgetAttempt(a assignedTo) {
	if t := p.attempts[a]; t != nil {
		p.setLateness(a, t, OnTime, "")
		delete(p.attempts, a)
	}
}

// judgeAttempt says how late a node is with an address that it is assigned, and when to look again. It says of the node
// what it says itself now: once the address is elsewhere, it says nothing of it any more.
func (p *Patience) judgeAttempt(w *world.World, a assignedTo, t *attempt, now time.Time) (next time.Time) {
	t.since = notAfter(t.since, now)
	more := time.Duration(min(t.among, mostAddresses)-1) * perAddress
	tellAt, giveUpAt := t.since.Add(lateAfter+more/2), t.since.Add(tooLateAfter+more)
	switch {
	case t.how == TooLate:
		return time.Time{}
	case !now.Before(giveUpAt):
		t.failures++
		p.setLateness(a, t, TooLate, w.Problem(a.node, a.claim.Object))
		return time.Time{}
	case !now.Before(tellAt):
		p.setLateness(a, t, Late, "")
		return giveUpAt
	}
	return tellAt
}

// notAfter is a time that has come: if the clock was set back since it was noted, waiting begins again.
func notAfter(t, now time.Time) time.Time {
	if t.After(now) {
		return now
	}
	return t
}

// judgeFormer reports whether the loss of an address must be remembered, so that the node does not get the next one. It
// is forgotten when nobody asks for the address, and some time after it was forgiven.
func (p *Patience) judgeFormer(w *world.World, a assignedTo, t *attempt, now time.Time) (next time.Time) {
	if t.failures == 0 || w.Node(a.node) == nil || !p.asks(w, a.claim.Object, a.claim.IP) {
		p.forgetAttempt(a)
		return time.Time{}
	}
	if !t.since.IsZero() {
		t.since, t.left = time.Time{}, now
	}
	t.left = notAfter(t.left, now)
	forgiven := t.left.Add(min(forgivenAfter<<min(t.failures-1, 10), mostForgiven))
	forgotten := forgiven.Add(2 * mostForgiven)
	switch {
	case !now.Before(forgotten):
		p.forgetAttempt(a)
		return time.Time{}
	case !now.Before(forgiven):
		p.setLateness(a, t, OnTime, "")
		return forgotten
	}
	return forgiven
}
