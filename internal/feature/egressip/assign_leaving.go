package egressip

import (
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// How long a former holder goes on translating at the most, when pods' nodes do not say that they have stopped sending
// packets there.
const (
	// leavingFor is with a successor: longer than an agent is restarted for, so that its pods lose nothing.
	leavingFor = 30 * time.Second
	// saysNothingFor is how long a pods' node that has not told where it steers is taken to steer to the former holder:
	// an agent of before status.steers.
	saysNothingFor = 2 * time.Second
	// abandonedFor is without one: an administrator who takes a node out of use expects it to be out of use.
	abandonedFor = 3 * time.Second
)

// leaving are the former holders of an object's addresses that are to go on translating: until the successor holds the
// address and no node steers to the former one. None is taken off, whatever time has passed, before the API has shown
// that it leaves: its successor could not know before. An address that the spec no longer names, or that is somebody
// else's, is let go of at once, and so is all of a family without any node.
func (a *assigner) leaving(o *object, items []world.Assignment) (out []world.Leaving, again time.Time) {
	for _, l := range a.formerHolders(o.e, items) {
		until := l.Since.Add(leavingFor)
		if !assigned(items, l.IP) {
			until = l.Since.Add(abandonedFor)
		}
		over := !a.Now.Before(until) && !a.cannotLetGo(o.e, items, l)
		if !a.mayLeave(o.e, items, l) || a.Written(o.e.Name).Leaves(l.Node, l.IP) && (over || a.done(o.e, items, l)) {
			continue
		}
		if out = append(out, l); a.Now.Before(until) {
			again = decide.Earlier(again, a.nextLook(l, until))
		}
	}
	return out, again
}

// nextLook is when a former holder is to be looked at again though nothing changes.
func (a *assigner) nextLook(l world.Leaving, until time.Time) time.Time {
	if silent := l.Since.Add(saysNothingFor); silent.After(a.Now) && silent.Before(until) {
		return silent
	}
	return until
}

// formerHolders are those that the object names as leaving, and those that it names as holders of what is decided to be
// elsewhere.
func (a *assigner) formerHolders(e *world.EgressIP, items []world.Assignment) []world.Leaving {
	out := slices.Clone(e.Leaving)
	for i := range out {
		if out[i].Since.After(a.Now) { // the clock was set back, or another controller's is ahead
			out[i].Since = a.Now
		}
	}
	for _, old := range e.Items {
		if !slices.Contains(items, old) && !e.Leaves(old.Node, old.IP) {
			out = append(out, world.Leaving{Node: old.Node, IP: old.IP, Since: a.Now})
		}
	}
	return out
}

// mayLeave says whether a former holder is one that can go on. A node that is given another address of the same object
// and family cannot: two rows that translate the same pods would leave it open which one does.
func (a *assigner) mayLeave(e *world.EgressIP, items []world.Assignment, l world.Leaving) bool {
	f := world.FamilyOf(l.IP)
	if a.w.Node(l.Node) == nil || a.w.Unreachable(l.Node) == world.NodeUnreachable || !slices.Contains(e.IPs, l.IP) ||
		a.conflicts(e.Name, l.IP) {
		return false
	}
	instead := func(i world.Assignment) bool { return i.Node == l.Node && world.FamilyOf(i.IP) == f }
	return hasFamily(items, f) && !slices.ContainsFunc(items, instead)
}

// cannotLetGo says whether a former holder translates on, whatever the status says, for its agent is away: OVN there
// steers the node's own pods by what stands, and the successor passes the answers on only to one that leaves.
func (a *assigner) cannotLetGo(e *world.EgressIP, items []world.Assignment, l world.Leaving) bool {
	return assigned(items, l.IP) && a.w.Unreachable(l.Node) == world.AgentAway &&
		a.holds(e.Name, world.Assignment{Node: l.Node, IP: l.IP})
}

// done says whether nobody needs a former holder any more.
func (a *assigner) done(e *world.EgressIP, items []world.Assignment, l world.Leaving) bool {
	for _, i := range items {
		if i.IP == l.IP && !a.holds(e.Name, i) {
			return false
		}
	}
	return !a.steersTo(e.Name, world.Assignment{Node: l.Node, IP: l.IP}) &&
		!(a.Now.Before(l.Since.Add(saysNothingFor)) && a.saysNothing(e.Name, l.IP))
}

// saysNothing says whether any node that can be reached, and has running pods of an object, does not tell where it
// leads them.
func (a *assigner) saysNothing(egressIP string, ip netip.Addr) bool {
	f := world.FamilyOf(ip)
	return slices.ContainsFunc(a.Served.Nodes(egressIP, f), func(node string) bool {
		n := a.w.Node(node)
		return n != nil && n.Ready && a.w.Unreachable(node) == "" && a.w.Steers(node, egressIP, f, nil)
	})
}

// steersTo says whether any node that can be reached leads its pods to a holder, or may do so and has no room left to
// say.
func (a *assigner) steersTo(egressIP string, to world.Assignment) bool {
	untold := func(node string) bool {
		return a.w.Unreachable(node) != world.NodeUnreachable && a.w.SteersUntold(node, egressIP)
	}
	return slices.ContainsFunc(a.Served.Nodes(egressIP, world.FamilyOf(to.IP)), untold) ||
		slices.ContainsFunc(a.names, func(node string) bool {
			return a.w.SteersTo(node, egressIP, to) && a.w.Unreachable(node) != world.NodeUnreachable
		})
}

func assigned(items []world.Assignment, ip netip.Addr) bool {
	return slices.ContainsFunc(items, func(i world.Assignment) bool { return i.IP == ip })
}
