package world

import (
	"maps"
	"net/netip"
	"slices"
)

// Allocation is what is decided about a Node.
type Allocation struct {
	ID            int            // 0: none is free
	Subnets       []netip.Prefix // one a family, in the order of the families; fewer where none is free
	Join, Transit []netip.Prefix // the node's addresses there, one a family
	// Further are the node's subnets of networks beside the default one, by network.
	Further map[string]NodeNetwork
	Record  Record // the addresses it names that are the node's own
	Problem string // the fault, and what to do
}

// decidesNode is how that stands over Nodes.
func decidesNode() Decides[Node] {
	return Decides[Node]{UID: func(n *Node) string { return n.UID }, Over: allocatedOver, Same: sameAllocation}
}

func allocatedOver(shown *Node, d Decision) *Node {
	out := *shown
	if a, is := d.Status.(Allocation); is {
		out.ID, out.Subnets, out.Join, out.Transit = a.ID, a.Subnets, a.Join, a.Transit
		out.Further, out.Record, out.AllocationProblem = a.Further, a.Record, a.Problem
		out.Unread.ID, out.Unread.Subnets = false, false
	}
	out.Labels = d.Labels.mergedOver(shown.Labels)
	return &out
}

func sameAllocation(a, b *Node) bool {
	return a.ID == b.ID && a.Unread == b.Unread && slices.Equal(a.Subnets, b.Subnets) &&
		SameParts(a.Further, b.Further) && slices.Equal(a.Join, b.Join) && slices.Equal(a.Transit, b.Transit) &&
		a.Record.Same(b.Record) && a.AllocationProblem == b.AllocationProblem && maps.Equal(a.Labels, b.Labels)
}
