package egressip

import (
	"time"

	"github.com/egret-net/egret/internal/world"
)

// How long a node may take to hold what it is assigned. A healthy one takes some tens of milliseconds.
const (
	lateAfter    = 5 * time.Second  // then people are told
	tooLateAfter = 10 * time.Second // then another node is chosen, if there is one
	// forgivenAfter is when a node that was too late may be given something new again though others can take it.
	forgivenAfter = 5 * time.Minute
)

// Patience measures how long nodes do not do what they are asked for, and puts what follows into the world.
type Patience struct {
	since    map[assignedTo]time.Time // they do not hold what they are assigned
	steering map[podsOf]time.Time     // they do not confirm that they steer
}

// assignedTo is an address of an EgressIP on a node.
type assignedTo struct {
	claim world.Claim
	node  string
}

// NewPatience has seen nothing yet.
func NewPatience() *Patience {
	return &Patience{since: map[assignedTo]time.Time{}, steering: map[podsOf]time.Time{}}
}

// Look compares what is assigned with what is held. It returns what it touched, and when to look again though nothing changes; zero: not.
func (p *Patience) Look(w *world.World, now time.Time) (touched []world.Touch, again time.Time) {
	awaited := map[assignedTo]bool{}
	for e := range w.EachEgressIP() {
		for _, i := range e.Items {
			a := assignedTo{world.Claim{EgressIP: e.Name, IP: i.IP}, i.Node}
			if w.Holds(i.Node, e.Name, i.IP) {
				touched = append(touched, p.forget(w, a)...)
				continue
			}
			if awaited[a] = true; p.since[a].IsZero() {
				p.since[a] = now
			}
		}
	}
	for a, since := range p.since {
		t, next := p.judge(w, a, now.Sub(since), awaited[a])
		touched = append(touched, t...)
		if next > 0 {
			again = earlier(again, since.Add(next))
		}
	}
	return touched, again
}

// Forget takes back all that was put into the world: another controller decides, and this one knows nothing any more when it does again.
func (p *Patience) Forget(w *world.World) {
	for a := range p.since {
		p.forget(w, a)
	}
	for s := range p.steering {
		p.confirmed(w, s)
	}
}

func (p *Patience) forget(w *world.World, a assignedTo) []world.Touch {
	delete(p.since, a)
	return w.SetOverdue(a.node, a.claim, world.OnTime)
}

// judge says how late a node is that has not held an address for so long, and at which age to look again. What is no longer awaited of it is remembered if it
// was too late with it, so that it is not given the next.
func (p *Patience) judge(w *world.World, a assignedTo, age time.Duration, awaited bool) (touched []world.Touch, next time.Duration) {
	tooLate := w.Overdue(a.node, a.claim) == world.TooLate
	switch {
	case !awaited && (!tooLate || age >= forgivenAfter):
		return p.forget(w, a), 0
	case !awaited:
		return nil, forgivenAfter
	case age >= tooLateAfter:
		return w.SetOverdue(a.node, a.claim, world.TooLate), 0
	case age >= lateAfter:
		return w.SetOverdue(a.node, a.claim, world.Late), tooLateAfter
	}
	return nil, lateAfter
}
