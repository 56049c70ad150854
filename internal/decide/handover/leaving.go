package handover

import (
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// How long a former holder goes on translating at the most, when pods' nodes do not say that they have stopped sending
// packets there.
const (
	// LeavingFor is with a successor: longer than an agent is restarted for, so that its pods lose nothing.
	LeavingFor = 30 * time.Second
	// saysNothingFor is how long a pods' node that has not told where it steers is taken to steer to the former holder:
	// an agent of before status.steers.
	saysNothingFor = 2 * time.Second
	// abandonedFor is without one: an administrator who takes a node out of use expects it to be out of use.
	abandonedFor = 3 * time.Second
)

// Object is an object whose addresses are held by nodes.
type Object struct {
	ref.Object
	Is    *world.Placement // as it was decided before
	Shown *world.Placement // as the API shows it: what nodes can know by now
	// Has says whether an address is still the object's, and nobody else's.
	Has func(netip.Addr) bool
}

// Round is a decision round.
type Round struct {
	World  *world.World
	W      *world.View // of World; what is read through it may be recorded
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
		if !assigned(items, l.IP) {
			until = l.Since.Add(abandonedFor)
		}
		over := !r.Now.Before(until) && !r.cannotLetGo(o, items, l)
		if !r.mayLeave(o, items, l) || o.Shown.Leaves(l.Node, l.IP) && (over || r.done(o, items, l)) {
			continue
		}
		if out = append(out, l); r.Now.Before(until) {
			again = decide.Earlier(again, r.nextLook(l, until))
		}
	}
	return out, again
}

// nextLook is when a former holder is to be looked at again though nothing changes.
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
	return assigned(items, l.IP) && r.W.Unreachable(l.Node) == world.AgentAway &&
		r.Holds(o.Key(), world.Assignment{Node: l.Node, IP: l.IP})
}

// done says whether nobody needs a former holder any more.
func (r *Round) done(o Object, items []world.Assignment, l world.Leaving) bool {
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
// in a family, or refuse part of it, by name. Some of them may not be waited for, see Answers: what their pods send,
// they drop or send as they did.
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

func assigned(items []world.Assignment, ip netip.Addr) bool {
	return slices.ContainsFunc(items, func(i world.Assignment) bool { return i.IP == ip })
}
