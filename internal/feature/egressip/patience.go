package egressip

import (
	"slices"
	"time"

	"github.com/egret-net/egret/internal/world"
)

// How long a node may take to hold what it is assigned. A healthy one takes some tens of milliseconds.
const (
	lateAfter    = 5 * time.Second  // then people are told
	tooLateAfter = 10 * time.Second // then another node is chosen, if there is one
	// perAddress is added for each address that the node is waited for at the same time, half of it before people are told: OVN 25.03 takes 2.2 ms a NAT row
	// and policy where nothing else runs, and confirms all of them at once. Without it, many addresses of a dead node would wander from node to node.
	perAddress = 10 * time.Millisecond
	// mostAddresses is how many count.
	mostAddresses = 5000
	// forgivenAfter is when a node that was too late may be given something new again though others can take it. It doubles with each time that it was too
	// late again with the same address, up to mostForgiven: nodes of which none can hold an address do not hand it round and round.
	forgivenAfter = 5 * time.Minute
	mostForgiven  = 40 * time.Minute
)

// Patience measures how long nodes do not do what they are asked for, and puts what follows into the world.
type Patience struct {
	attempts map[assignedTo]*attempt
	steering map[podsOf]time.Time // since when they do not confirm that they steer
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
}

// NewPatience has seen nothing yet.
func NewPatience() *Patience {
	return &Patience{attempts: map[assignedTo]*attempt{}, steering: map[podsOf]time.Time{}}
}

// Items are those of an EgressIP, as they are decided.
type Items func(e *world.EgressIP) []world.Assignment

// ItemsOf are those that a world has.
func ItemsOf(e *world.EgressIP) []world.Assignment { return e.Items }

// Look compares what is assigned with what is held. It returns what it touched, and when to look again though nothing changes; zero: not. Of what was decided
// and is not written yet no node knows: none is waited for. Decided are a decision's items, of which the world may
// not have all yet.
func (p *Patience) Look(w *world.World, decided Items, written Written, now time.Time) (
	touched []world.Touch, again time.Time) {
	awaited := map[string][]assignedTo{} // by node
	for e := range w.EachEgressIP() {
		touched = append(touched, p.compare(w, e.Name, decided(e), written(e.Name), awaited)...)
	}
	is := p.begin(awaited, now)
	for a, t := range p.attempts {
		var next time.Time
		var more []world.Touch
		if is[a] {
			more, next = t.judge(w, a, now)
		} else {
			more, next = p.judgeFormer(w, a, t, now)
		}
		touched, again = append(touched, more...), earlier(again, next)
	}
	return touched, again
}

// Seen begins to wait for what the API shows of an EgressIP from now on. It returns when to Look though nothing changes; zero: not.
func (p *Patience) Seen(w *world.World, shown *world.EgressIP, now time.Time) (again time.Time) {
	awaited := map[string][]assignedTo{}
	if p.compare(w, shown.Name, w.EgressIP(shown.Name).Items, shown, awaited); len(p.begin(awaited, now)) > 0 {
		return now.Add(lateAfter)
	}
	return time.Time{}
}

// compare adds to awaited, by node, what an EgressIP's status assigns as decided and as written, and the node does not hold. It forgets what the node holds.
func (p *Patience) compare(w *world.World, name string, items []world.Assignment, shown *world.EgressIP,
	awaited map[string][]assignedTo) (touched []world.Touch) {
	for _, i := range items {
		a := assignedTo{world.EgressAddress{EgressIP: name, IP: i.IP}, i.Node}
		switch {
		case w.Holds(i.Node, name, i.IP):
			touched = append(touched, p.forget(w, a)...)
		case slices.Contains(shown.Items, i):
			awaited[i.Node] = append(awaited[i.Node], a)
		}
	}
	return touched
}

// begin notes what nodes are waited for from now on, and returns all that they are waited for.
func (p *Patience) begin(awaited map[string][]assignedTo, now time.Time) map[assignedTo]bool {
	is := map[assignedTo]bool{}
	for _, list := range awaited {
		for _, a := range list {
			t := p.attempts[a]
			if t == nil {
				t = &attempt{}
				p.attempts[a] = t
			}
			if t.since.IsZero() {
				t.since, t.among = now, 0
			}
			t.among = max(t.among, len(list))
			is[a] = true
		}
	}
	return is
}

// Forget takes back all that was put into the world: another controller decides, and this one knows nothing any more when it does again.
func (p *Patience) Forget(w *world.World) {
	for a := range p.attempts {
		p.forget(w, a)
	}
	for s := range p.steering {
		p.confirmed(w, s)
	}
}

func (p *Patience) forget(w *world.World, a assignedTo) []world.Touch {
	delete(p.attempts, a)
	return w.SetOverdue(a.node, a.claim, world.OnTime, "")
}

// judge says how late a node is with an address that it is assigned, and when to look again. It says of the node what it says itself now: once the address
// is elsewhere, it says nothing of it any more.
func (t *attempt) judge(w *world.World, a assignedTo, now time.Time) (touched []world.Touch, next time.Time) {
	more := time.Duration(min(t.among, mostAddresses)-1) * perAddress
	late, tooLate := t.since.Add(lateAfter+more/2), t.since.Add(tooLateAfter+more)
	switch {
	case w.Overdue(a.node, a.claim) == world.TooLate:
		return nil, time.Time{}
	case !now.Before(tooLate):
		t.failures++
		return w.SetOverdue(a.node, a.claim, world.TooLate, w.Problem(a.node, a.claim.EgressIP)), time.Time{}
	case !now.Before(late):
		return w.SetOverdue(a.node, a.claim, world.Late, ""), tooLate
	}
	return nil, late
}

// judgeFormer says of an address that was taken from a node whether that is to be remembered, so that the node is not given the next. It is forgotten when
// nobody asks for the address, and some time after it was forgiven.
func (p *Patience) judgeFormer(w *world.World, a assignedTo, t *attempt, now time.Time) (touched []world.Touch, next time.Time) {
	if e := w.EgressIP(a.claim.EgressIP); t.failures == 0 || e == nil || !slices.Contains(e.IPs, a.claim.IP) || w.Node(a.node) == nil {
		return p.forget(w, a), time.Time{}
	}
	if !t.since.IsZero() {
		t.since, t.left = time.Time{}, now
	}
	forgiven := t.left.Add(min(forgivenAfter<<min(t.failures-1, 10), mostForgiven))
	forgotten := forgiven.Add(2 * mostForgiven)
	switch {
	case !now.Before(forgotten):
		return p.forget(w, a), time.Time{}
	case !now.Before(forgiven):
		return w.SetOverdue(a.node, a.claim, world.OnTime, ""), forgotten
	}
	return nil, forgiven
}
