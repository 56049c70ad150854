package patience

import (
	"iter"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// steersWithin is how long a node is waited for to confirm that it steers.
const steersWithin = handover.LeavingFor

// podsOf are those of an object on a node.
type podsOf struct {
	node, object string
}

// silence is a node's that does not confirm that it steers, and does not say what keeps it.
type silence struct {
	since time.Time
	over  bool // it is no longer waited for
}

// isSilent says whether a node is no longer waited for to confirm that it steers pods of an object.
func (p *Patience) isSilent(node, object string) bool {
	s := p.steering[podsOf{node, object}]
	return s != nil && s.over
}

// Awaited are the nodes that an object was decided to wait for, and that do not say what keeps them.
type Awaited func(object string) []string

// Await compares decisions, and those of them that are new, with how long nodes have been waited for. It says whether
// that calls for another decision, and when to look again though nothing changes; zero: not. A node that confirms, or
// reports a hindrance, begins again.
func (p *Patience) Await(awaited Awaited, anew iter.Seq[string], now time.Time) (changed bool, again time.Time) {
	for object := range anew {
		for _, node := range awaited(object) {
			if s := (podsOf{node, object}); p.steering[s] == nil {
				p.steering[s] = &silence{since: now}
			}
		}
	}
	for s, t := range p.steering {
		was := t.over
		t.since = notAfter(t.since, now)
		switch until := t.since.Add(steersWithin); {
		case !slices.Contains(awaited(s.object), s.node):
			t.over = false
			delete(p.steering, s)
		case now.Before(until):
			again = decide.Earlier(again, until)
		default:
			t.over = true
		}
		if was != t.over {
			changed, p.News[s.object] = true, struct{}{}
		}
	}
	return changed, again
}

// Unsteered are the nodes with pods of an object that have not confirmed that they lead these to all that hold an
// address.
type Unsteered struct {
	Waiting []Waiting // that are waited for
	Silent  []string  // that were, for as long as that may take, in words
	Awaited []string  // the names of those that may end up there, each once: they do not say what keeps them
	Unasked []string  // the names of those that are not ready or not reached, each once
}

// Waiting is a node that is waited for, and the family.
type Waiting struct {
	Node   string
	Family world.Family
	Says   string // what keeps it, by its own word; "": nothing
	Text   string // the whole of it, for people
}

// Unsteered looks at one object. Only those that can hold an address are probed: another node whose agent is gone is
// waited for no longer than a former holder is kept for it. The time for it begins when all that it is to confirm is
// held.
func (p *Patience) Unsteered(r *handover.Round, o ref.Object, items []world.Assignment) Unsteered {
	unheld := func(i world.Assignment) bool { return !r.Holds(o.Key(), i) }
	return p.Unconfirmed(r, o, !slices.ContainsFunc(items, unheld), func(f world.Family) []string {
		if to := handover.OfFamily(items, f); len(to) > 0 {
			return r.Unconfirmed(o, f, to)
		}
		return nil
	})
}

// Unconfirmed is the same of an object whose nodes confirm something else: nodes are those of a family that have not.
// Held says whether all that they are to confirm is held.
func (p *Patience) Unconfirmed(r *handover.Round, o ref.Object, held bool,
	nodes func(world.Family) []string) (u Unsteered) {
	for _, f := range r.W.Config.Families() {
		for _, node := range nodes(f) {
			p.noteUnconfirmed(&u, r, o.Key(), Waiting{Node: node, Family: f, Says: r.W.Problem(node, o.Key())}, held)
		}
	}
	return u
}

// noteUnconfirmed says of a node that has not confirmed whether it is waited for. A report that is full may leave out
// this object: that counts as silence.
func (p *Patience) noteUnconfirmed(u *Unsteered, r *handover.Round, object string, n Waiting, held bool) {
	if !r.Answers(n.Node) {
		if !slices.Contains(u.Unasked, n.Node) {
			u.Unasked = append(u.Unasked, n.Node)
		}
		return
	}
	over := p.isSilent(n.Node, object)
	silent := (n.Says == "" || r.W.SteersUntold(n.Node, object)) && (over || held)
	if silent && !slices.Contains(u.Awaited, n.Node) {
		u.Awaited = append(u.Awaited, n.Node)
	}
	if silent && over {
		u.Silent = append(u.Silent, n.describeSilence())
		return
	}
	if n.Text = n.Node + " does not lead its pods there over IP" + n.Family.String() + " yet"; n.Says != "" {
		n.Text += ": " + n.Says
	}
	u.Waiting = append(u.Waiting, n)
}

// describeSilence says what is not known of a node.
func (n Waiting) describeSilence() string {
	text := n.Node + " has not confirmed for " + steersWithin.String() + " that it leads its pods there over IP" +
		n.Family.String() + ": "
	if n.Says != "" {
		return text + n.Says
	}
	return text + "see whether egret-node runs there"
}

// Given is what is added to a condition that does not wait for nodes any more.
func (u *Unsteered) Given() (text string) {
	if len(u.Silent) > 0 {
		text = "; " + decide.Some(u.Silent)
	}
	return text + decide.Unasked(u.Unasked)
}

// Text names those that are waited for.
func (u *Unsteered) Text() string {
	var said []string
	for _, n := range u.Waiting {
		said = append(said, n.Text)
	}
	return decide.Some(said)
}
