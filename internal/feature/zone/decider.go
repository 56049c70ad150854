package zone

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// reasonAllocation is the reason of Events about ids and subnets of nodes.
const reasonAllocation = "NodeAllocation"

// reasonMoved is the reason of the Event of a node that is recorded with other addresses than before.
const reasonMoved = "NodeAddressChanged"

// Allocator decides about Nodes: which id and subnets each gets, and what is recorded of it. It decides about nodes
// that have changed, and about open ones: their allocation may follow from other nodes, EgressIPs and Services.
type Allocator struct {
	reader  *world.Reader
	stale   bool                // something that open nodes depend on has changed
	changed map[string]struct{} // nodes, since the last decision
	open    map[string]struct{} // nodes that are not settled, or in networks beside the default one
	taken   *taken              // nil: nothing was decided yet
	parts   *parts
	resting resting
	last    map[string]lastGot
	told    decide.Told // by node
}

// lastGot is what a Node got by the last decision, and its UID: another Node by the same name has got nothing.
type lastGot struct {
	Allocation
	uid string
}

// NewAllocator has decided nothing yet, and told of nothing.
func NewAllocator() *Allocator {
	d := &Allocator{changed: map[string]struct{}{}, open: map[string]struct{}{}, parts: newParts(),
		resting: resting{}, last: map[string]lastGot{}, told: decide.Told{}}
	d.reader = world.NewReader(func() { d.stale = true })
	return d
}

// NoteChanged takes in what changes.
func (d *Allocator) NoteChanged(e world.Entry) {
	if e.Kind == world.KindNode {
		d.changed[e.Key] = struct{}{}
	}
	d.parts.noteChanged(e)
}

// Seen does nothing: a decision about a Node does not depend on how much of it has been written.
func (d *Allocator) Seen(decide.View, world.Entry) time.Time { return time.Time{} }

// Decide says what each node gets, of those for which that is news.
func (d *Allocator) Decide(v decide.View) (desired []decide.Desired, again time.Time) {
	names := d.concernedNodes(v)
	if len(names) == 0 {
		return nil, d.parts.again
	}
	d.parts.beginDecision()
	d.taken.resting = d.resting
	d.resting.expire(v.Now)
	for _, name := range names {
		n := v.Node(name)
		if last := d.last[name]; n == nil || n.UID != last.uid {
			d.resting.note(name, last.Allocation, v.Now)
		}
		d.taken.putNode(name, n)
	}
	w := d.reader.Reading(v.World)
	for _, name := range names {
		n, said := v.Node(name), v.Said(name)
		if n == nil {
			d.forgetNode(name)
			continue
		}
		a := d.taken.allocateNode(w, n)
		d.parts.allocateParts(w, d.taken, n, said, v.Now, &a)
		if d.open[name] = struct{}{}; !a.isSettled(n) || !world.SameParts(a.Further, n.Further) {
			d.taken.giveNode(n, a)
		} else if len(a.Further) == 0 && !d.parts.hasMembers(name) {
			delete(d.open, name)
		}
		_, changed := d.changed[name]
		last, is := d.last[name]
		if is = is && last.uid == said.UID; !is {
			last.Allocation = Allocation{}
		}
		if !is || changed || !last.equalAllocation(a) {
			desired = append(desired, d.desiredNode(said, a, last.Allocation))
		}
		d.last[name] = lastGot{a, said.UID}
	}
	d.stale = false
	clear(d.changed)
	return desired, d.parts.again
}

// concernedNodes returns the nodes that must be decided about, by name.
func (d *Allocator) concernedNodes(v decide.View) []string {
	if d.taken == nil {
		d.parts.noteAll(v.World)
	}
	d.parts.followChanges(v.World, func(node string) { d.changed[node] = struct{}{} })
	names := slices.Collect(maps.Keys(d.changed))
	if d.taken == nil {
		d.taken = newTaken()
		names = append(names, v.Nodes()...)
	}
	if len(names) > 0 || d.stale || d.parts.isDue(v.Now) {
		names = slices.AppendSeq(names, maps.Keys(d.open))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// forgetNode forgets a node that is gone.
func (d *Allocator) forgetNode(name string) {
	delete(d.open, name)
	delete(d.last, name)
	delete(d.told, name)
	delete(d.parts.left, name)
}

// desiredNode is a Node with what it gets, given what it got last.
func (d *Allocator) desiredNode(n *world.Node, a, last Allocation) decide.Desired {
	one := decide.Desired{Kind: world.KindNode, Key: n.Name, Decision: world.Decision{UID: n.UID}}
	one.Decision.Status = world.Allocation{
		ID: a.ID, Subnets: a.Subnets, Further: a.Further, Join: a.Join, Transit: a.Transit, Record: a.Record,
		Problem: decide.Messages(a.Problems),
	}
	one.Events = d.told.Tell(n.Name, n.UID, n.AllocationProblem != "", a.Problems)
	if was, is := n.Record.Addrs, a.Record.Addrs; len(was) > 0 && !slices.Equal(was, is) &&
		!slices.Equal(last.Record.Addrs, is) {
		one.Events = append(one.Events, decide.Event{Reason: reasonMoved, Message: fmt.Sprintf(
			"recorded as the node's addresses are %s now, and were %s: selected pods of other nodes reach it there",
			addrsText(is), addrsText(was))})
	}
	for i := range one.Events {
		one.Events[i].Action = "Allocate"
	}
	return one
}

func (a Allocation) equalAllocation(o Allocation) bool {
	return a.ID == o.ID && slices.Equal(a.Subnets, o.Subnets) && slices.Equal(a.Join, o.Join) &&
		world.SameParts(a.Further, o.Further) &&
		slices.Equal(a.Transit, o.Transit) && a.Record.Same(o.Record) && slices.Equal(a.Problems, o.Problems)
}

func addrsText(list []netip.Addr) string {
	var out []string
	for _, a := range list {
		out = append(out, a.String())
	}
	return strings.Join(out, ", ")
}
