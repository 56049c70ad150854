package egressip

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/world"
)

// nodesKnown keeps the addresses that nodes are known by. They are found when they are first asked for, and again when
// something that they follow from has changed: a node, or an EgressIP's status that gives one of them to another node.
type nodesKnown struct {
	reader *world.Reader
	known  []knownNode // by name; nil: not found yet
}

type knownNode struct {
	name  string
	addrs []netip.Addr
}

// newNodesKnown returns one that calls stale when what was found is not known any more.
func newNodesKnown(stale func()) *nodesKnown {
	n := &nodesKnown{}
	n.reader = world.NewReader(func() {
		n.known = nil
		stale()
	})
	return n
}

// nodesWithin are the nodes that are known by an address of a set, by name.
func (n *nodesKnown) nodesWithin(w *world.World, s destinations.Set) (names []string) {
	if n.known == nil {
		n.reader.Read(w, n.findNodes)
	}
	for _, node := range n.known {
		if slices.ContainsFunc(node.addrs, s.Contains) {
			names = append(names, node.name)
		}
	}
	return names
}

func (n *nodesKnown) findNodes(w *world.View) {
	for _, name := range w.Nodes() {
		n.known = append(n.known, knownNode{name, w.NodeAddrs(w.Node(name))})
	}
}
