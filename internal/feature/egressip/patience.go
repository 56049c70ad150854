package egressip

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

// Patience measures how long nodes do not do what they are asked for, by the controller's clock. What follows stands
// beside the world in a decision, and is written nowhere: another leader begins to measure anew.
type Patience struct {
	attempts map[assignedTo]*attempt
	steering map[podsOf]*unconfirmed
	awaited  map[string][]assignedTo // by EgressIP: what is assigned, as the API shows it, and not held
	news     map[string]struct{}     // EgressIPs of which it says something else than before
}

// assignedTo is an address of an EgressIP on a node.
type assignedTo struct {
	claim world.EgressAddress
	node  string
}

// attempt is what is known of a node that does not hold an address which it is assigned, or did not when it was.
type attempt struct {
	since    time.Time // when the API showed that it is assigned; zero: it is not any more
	among    int       // how many addresses the node was waited for meanwhile, at the most
	failures int       // how often it was too late
	left     time.Time // when the address was taken from it after that
	how      overdue
	why      string // it was too late, by its own word; "": it says nothing
}

// overdue is how long a node has not held an egress IP that it is assigned.
type overdue uint8

const (
	onTime  overdue = iota // it holds the address, or has not had it for long
	late                   // longer than a healthy node takes
	tooLate                // another node is to try
)

// NewPatience has seen nothing yet.
func NewPatience() *Patience {
	return &Patience{attempts: map[assignedTo]*attempt{}, steering: map[podsOf]*unconfirmed{},
		awaited: map[string][]assignedTo{}, news: map[string]struct{}{}}
}

// overdue is how late a node is with an address of an EgressIP.
func (p *Patience) overdue(node, egressIP string, ip netip.Addr) overdue {
	if t := p.attempts[assignedTo{world.EgressAddress{EgressIP: egressIP, IP: ip}, node}]; t != nil {
		return t.how
	}
	return onTime
}

// TooLate are the nodes that are too late, by the address that they are too late with, and what they said of it then
// ("": nothing).
func (p *Patience) TooLate() map[world.EgressAddress]map[string]string {
	out := map[world.EgressAddress]map[string]string{}
	for a, t := range p.attempts {
		if t.how != tooLate {
			continue
		}
		if out[a.claim] == nil {
			out[a.claim] = map[string]string{}
		}
		out[a.claim][a.node] = t.why
	}
	return out
}

// Items are those of an EgressIP, as they are decided.
type Items func(e *world.EgressIP) []world.Assignment

// ItemsOf are those that a world has.
func ItemsOf(e *world.EgressIP) []world.Assignment { return e.Items }

// Look compares what is assigned with what is held, of the EgressIPs for which any of that may have changed since it
// was last called. It returns when to look again though nothing changes; zero: not. Of what was decided and is not
// written yet no node knows: none is waited for. Decided are a decision's items, of which the world may not have all
// yet.
func (p *Patience) Look(w *world.World, names iter.Seq[string], decided Items, written Written,
	now time.Time) (again time.Time) {
	for name := range names {
		delete(p.awaited, name)
		if e := w.EgressIP(name); e != nil {
			p.compare(w, name, decided(e), written(name))
		}
	}
	is := p.begin(maps.Values(p.awaited), now)
	for a, t := range p.attempts {
		if is[a] {
			again = decide.Earlier(again, p.judge(w, a, t, now))
		} else {
			again = decide.Earlier(again, p.judgeFormer(w, a, t, now))
		}
	}
	return again
}

// Seen begins to wait for what the API shows of an EgressIP from now on. It returns when to Look though nothing
// changes; zero: not.
func (p *Patience) Seen(w *world.World, shown *world.EgressIP, now time.Time) (again time.Time) {
	p.compare(w, shown.Name, w.EgressIP(shown.Name).Items, shown)
	if len(p.begin(slices.Values([][]assignedTo{p.awaited[shown.Name]}), now)) > 0 {
		return now.Add(lateAfter)
	}
	return time.Time{}
}

// compare notes what an EgressIP's status assigns as decided and as written, and the node does not hold. It forgets
// what the node holds.
func (p *Patience) compare(w *world.World, name string, items []world.Assignment, shown *world.EgressIP) {
	var awaited []assignedTo
	for _, i := range items {
		a := assignedTo{world.EgressAddress{EgressIP: name, IP: i.IP}, i.Node}
		switch {
		case w.Holds(i.Node, name, i.IP):
			p.forget(a)
		case slices.Contains(shown.Items, i):
			awaited = append(awaited, a)
		}
	}
	if p.awaited[name] = awaited; len(awaited) == 0 {
		delete(p.awaited, name)
	}
}

// begin notes what nodes are waited for from now on, and returns all that they are waited for.
func (p *Patience) begin(awaited iter.Seq[[]assignedTo], now time.Time) map[assignedTo]bool {
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

// say has a node be so late with an address.
func (p *Patience) say(a assignedTo, t *attempt, how overdue, why string) {
	if t.how != how || t.why != why {
		p.news[a.claim.EgressIP] = struct{}{}
	}
	t.how, t.why = how, why
}

// forget no longer knows of a node and an address.
func (p *Patience) forget(a assignedTo) {
	if t := p.attempts[a]; t != nil {
		p.say(a, t, onTime, "")
		delete(p.attempts, a)
	}
}

// judge says how late a node is with an address that it is assigned, and when to look again. It says of the node what
// it says itself now: once the address is elsewhere, it says nothing of it any more.
func (p *Patience) judge(w *world.World, a assignedTo, t *attempt, now time.Time) (next time.Time) {
	more := time.Duration(min(t.among, mostAddresses)-1) * perAddress
	tellAt, giveUpAt := t.since.Add(lateAfter+more/2), t.since.Add(tooLateAfter+more)
	switch {
	case t.how == tooLate:
		return time.Time{}
	case !now.Before(giveUpAt):
		t.failures++
		p.say(a, t, tooLate, w.Problem(a.node, a.claim.EgressIP))
		return time.Time{}
	case !now.Before(tellAt):
		p.say(a, t, late, "")
		return giveUpAt
	}
	return tellAt
}

// judgeFormer says of an address that was taken from a node whether that is to be remembered, so that the node is not
// given the next. It is forgotten when nobody asks for the address, and some time after it was forgiven.
func (p *Patience) judgeFormer(w *world.World, a assignedTo, t *attempt, now time.Time) (next time.Time) {
	if e := w.EgressIP(a.claim.EgressIP); t.failures == 0 || e == nil || !slices.Contains(e.IPs, a.claim.IP) ||
		w.Node(a.node) == nil {
		p.forget(a)
		return time.Time{}
	}
	if !t.since.IsZero() {
		t.since, t.left = time.Time{}, now
	}
	forgiven := t.left.Add(min(forgivenAfter<<min(t.failures-1, 10), mostForgiven))
	forgotten := forgiven.Add(2 * mostForgiven)
	switch {
	case !now.Before(forgotten):
		p.forget(a)
		return time.Time{}
	case !now.Before(forgiven):
		p.say(a, t, onTime, "")
		return forgotten
	}
	return forgiven
}
