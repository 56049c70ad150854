package egressip_test

import (
	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/world"
)

// node is a simulated node in its zone, since its last boot.
func (s *simulation) node(name string) *world.Node {
	n := simulatedNode(name)
	n.BootID = s.nodes[name].bootID(name)
	n.Labels = map[string]string{world.AssignableLabel: "", "zone": s.zones[name]}
	return n
}

// reselect is somebody who changes the zone of a node, or e0's selector of egress nodes, whereupon the controller
// decides about e0. It is in force all the time: where no node matches, its pods send nothing, as with the annotation.
func (s *simulation) reselect(t *rapid.T, name string) {
	if rapid.Bool().Draw(t, "of the node") {
		s.zones[name] = drawZone(t)
		n := s.node(name)
		s.happens(func(w *world.World) { w.SetNode(n) })
	} else {
		s.e.Nodes = drawSelector(t)
		s.wrote(s.e)
	}
	s.decider.learn(s, len(s.history))
	d := decideAt(s.decider.world, s.now)["e0"]
	for _, i := range d.Items {
		if !mayBeOn(&s.e, s.decider.world.Node(i.Node), i) {
			t.Fatalf("%v is on a node that does not match: %+v", i, s.e.Nodes)
		}
	}
	s.e.Items, s.e.Leaving = d.Items, d.Leaving
	s.wrote(s.e)
}
