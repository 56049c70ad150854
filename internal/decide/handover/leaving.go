package handover

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// A previous holder goes on translating at most so long when pods' nodes do not report that they have stopped sending
// packets there.
const (
	// LeavingFor is with a successor: longer than an agent is restarted for, so that its pods lose nothing.
	LeavingFor = 30 * time.Second
	// saysNothingFor is how long a pods' node that does not report where it steers counts as steering to the previous
	// holder: an agent older than status.steers.
	saysNothingFor = 2 * time.Second
	// abandonedFor is without one: an administrator who takes a node out of use expects it to be out of use.
	abandonedFor = 3 * time.Second
)

// Object is an object whose addresses are held by nodes.
type Object struct {
	ref.Object
	Is    *world.Placement // as it was decided before
	Shown *world.Placement // as the API shows it, and so known to nodes
	// Has says whether an address is still the object's, and nobody else's.
	Has func(netip.Addr) bool
}

// Round is a decision round.
type Round struct {
	World  *world.World
	W      *world.View // of World; reads through it may be recorded
	Served *Served     // the nodes of the pods that are served
	Names  []string    // of all nodes
	Now    time.Time
}

// Leaving are the former holders of an object's addresses that are to go on translating: until the successor, as Items
// say, holds the address and no node steers to the former one. None is taken off, whatever time has passed, before the
// API has shown that it leaves: its successor could not know before. An address that is no longer the object's is let
// go of at once, and so is all of a family without any node.
func (r *Round) Leaving(o Object, items []world.Assignment) (out []world.Leaving, again time.Time) {
	for _, l := range r.formerHolders(o, items) {
		until := l.Since.Add(LeavingFor)
		if !isAssigned(items, l.IP) {
			until = l.Since.Add(abandonedFor)
		}
		over := !r.Now.Before(until) && !r.cannotLetGo(o, items, l)
		if !r.mayLeave(o, items, l) || o.Shown.Leaves(l.Node, l.IP) && (over || r.isDrained(o, items, l)) {
			continue
		}
		if out = append(out, l); r.Now.Before(until) {
			again = decide.Earlier(again, r.nextLook(l, until))
		}
	}
	return o.withinRoom(out), again
}

// MostLeaving returns how many former holders the schema of a kind of object has room for.
func MostLeaving(kind string) int {
	if kind == ref.EgressService {
		return 32
	}
	return 1024
}

// withinRoom leaves out what the schema would refuse, and the whole status with it. The API server has shown of some
// former holders neither that they hold nor that they leave: these have hardly begun. Next go those that leave already,
// the longest first: their successors know of them. Each stops translating a little early, and an address goes to
// nobody else before its node says that it holds it no longer.
func (o Object) withinRoom(list []world.Leaving) []world.Leaving {
	most := MostLeaving(o.Kind)
	if len(list) <= most {
		return list
	}
	rank := func(l world.Leaving) int {
		switch {
		case slices.Contains(o.Shown.Items, world.Assignment{Node: l.Node, IP: l.IP}):
			return 0
		case o.Shown.Leaves(l.Node, l.IP):
			return 1
		}
		return 2
	}
	kept := slices.SortedStableFunc(slices.Values(list), func(a, b world.Leaving) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), b.Since.Compare(a.Since))
	})[:most]
	return slices.DeleteFunc(list, func(l world.Leaving) bool {
		return !slices.ContainsFunc(kept, func(k world.Leaving) bool { return k.Node == l.Node && k.IP == l.IP })
	})
}

// nextLook returns the deadline of the decision about a previous holder.
func (r *Round) nextLook(l world.Leaving, until time.Time) time.Time {
	if silent := l.Since.Add(saysNothingFor); silent.After(r.Now) && silent.Before(until) {
		return silent
	}
	return until
}

// formerHolders are those that the object names as leaving, and those that it names as holders of what is decided to be
// elsewhere.
func (r *Round) formerHolders(o Object, items []world.Assignment) []world.Leaving {
	out := slices.Clone(o.Is.Leaving)
	for i := range out {
		if out[i].Since.After(r.Now) { // the clock was set back, or another controller's is ahead
			out[i].Since = r.Now
		}
	}
	for _, old := range o.Is.Items {
		if !slices.Contains(items, old) && !o.Is.Leaves(old.Node, old.IP) {
			out = append(out, world.Leaving{Node: old.Node, IP: old.IP, Since: r.Now, Given: o.Is.Since(old)})
		}
	}
	return out
}

// mayLeave says whether a former holder is one that can go on. A node that is given another address of the same object
// and family cannot: two rows that translate the same pods would leave it open which one does.
func (r *Round) mayLeave(o Object, items []world.Assignment, l world.Leaving) bool {
	if r.W.Node(l.Node) == nil || r.W.Unreachable(l.Node) == world.NodeUnreachable || !o.Has(l.IP) {
		return false
	}
	of := OfFamily(items, world.FamilyOf(l.IP))
	return len(of) > 0 && !slices.ContainsFunc(of, func(i world.Assignment) bool { return i.Node == l.Node })
}

// cannotLetGo says whether a former holder translates on, whatever the status says, for its agent is away: OVN there
// steers the node's own pods by what stands, and the successor passes the answers on only to one that leaves.
func (r *Round) cannotLetGo(o Object, items []world.Assignment, l world.Leaving) bool {
	return isAssigned(items, l.IP) && r.W.Unreachable(l.Node) == world.AgentAway &&
		r.Holds(o.Key(), world.Assignment{Node: l.Node, IP: l.IP})
}

// isDrained says whether nobody needs a former holder any more.
func (r *Round) isDrained(o Object, items []world.Assignment, l world.Leaving) bool {
	for _, i := range items {
		if i.IP == l.IP && !r.Holds(o.Key(), i) {
			return false
		}
	}
	return !r.steersTo(o, world.Assignment{Node: l.Node, IP: l.IP}) &&
		!(r.Now.Before(l.Since.Add(saysNothingFor)) && r.saysNothing(o, world.FamilyOf(l.IP)))
}

// Holds says whether a node says that it holds an address, as it is named for it or, by an agent that does not say
// since when, before it is. That an address is held which the
// status does not name the node for yet is not recorded: the decision names it first, and is made again for that.
func (r *Round) Holds(object string, i world.Assignment) bool {
	return r.W.Holds(i.Node, object, i.IP) || r.World.SaysItHolds(i.Node, object, i.IP)
}

// saysNothing says whether any node that can be reached, and has running pods of an object, does not tell where it
// leads them.
func (r *Round) saysNothing(o Object, f world.Family) bool {
	return slices.ContainsFunc(r.Served.Nodes(o.Object, f), func(node string) bool {
		return r.Answers(node) && r.W.Steers(node, o.Key(), f, nil)
	})
}

// Answers says whether a node is waited for.
func (r *Round) Answers(node string) bool {
	n := r.W.Node(node)
	return n != nil && n.Ready && r.W.Unreachable(node) == ""
}

// AgentsAway lists by name the nodes that hold addresses of an object, or run pods that it serves, and whose agents are
// away. Nobody can tell what holds there by now: a pod that came, or has other labels, is served as before or not at
// all. A node that Kubernetes calls NotReady is not among them.
func (r *Round) AgentsAway(o ref.Object, items []world.Assignment) []string {
	var out []string
	note := func(node string) {
		if n := r.W.Node(node); n != nil && n.Ready && r.W.Unreachable(node) == world.AgentAway {
			out = append(out, node)
		}
	}
	for _, i := range items {
		note(i.Node)
	}
	for _, f := range r.W.Config.Families() {
		for _, node := range r.Served.Nodes(o, f) {
			note(node)
		}
	}
	return distinctTexts(out)
}

// AgentsAwayText says so for people, and what to do.
func AgentsAwayText(nodes []string) string {
	return "no agent lives on " + decide.Some(nodes) + ": what it has set up goes on as it is, and nothing new is set " +
		"up: see whether egret-node runs there"
}

// steersTo says whether any node that can be reached leads its pods to a holder, or may do so and has no room left to
// say.
func (r *Round) steersTo(o Object, to world.Assignment) bool {
	untold := func(node string) bool {
		return r.W.Unreachable(node) != world.NodeUnreachable && r.W.SteersUntold(node, o.Key())
	}
	return slices.ContainsFunc(r.Served.Nodes(o.Object, world.FamilyOf(to.IP)), untold) ||
		slices.ContainsFunc(r.Names, func(node string) bool {
			return r.W.SteersTo(node, o.Key(), to) && r.W.Unreachable(node) != world.NodeUnreachable
		})
}

// Unconfirmed are the nodes with pods of an object that have not confirmed that they lead these to all of what it has
// in a family, or refuse part of it, by name. Some of them may not be waited for, see Answers: they drop their pods'
// packets or send them as before.
func (r *Round) Unconfirmed(o ref.Object, f world.Family, to []world.Assignment) []string {
	return slices.DeleteFunc(r.Served.Nodes(o, f), func(node string) bool {
		return r.W.Steers(node, o.Key(), f, to) && !r.Refuses(node, o.Key())
	})
}

// Refuses says whether a node has a problem of an object, and not of all.
func (r *Round) Refuses(node, object string) bool {
	return r.W.Problem(node, object) != r.W.Problem(node, "")
}

// OfFamily are the items of a family.
func OfFamily(items []world.Assignment, f world.Family) []world.Assignment {
	return slices.DeleteFunc(slices.Clone(items), func(i world.Assignment) bool { return world.FamilyOf(i.IP) != f })
}

func isAssigned(items []world.Assignment, ip netip.Addr) bool {
	return slices.ContainsFunc(items, func(i world.Assignment) bool { return i.IP == ip })
}
