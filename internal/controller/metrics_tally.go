package controller

import (
	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/world"
)

// tally is what the decisions about EgressIPs add up to, so that a round counts what was decided in it.
type tally struct {
	shares map[string]share    // by EgressIP
	load   map[string]int      // addresses by node
	nodes  map[string]struct{} // those of which load, or whether they are egress nodes, may be another than it is told
	sum    counts
}

// counts are EgressIPs, and addresses.
type counts struct{ lacking, conflicts, addresses int }

// share is what one EgressIP adds.
type share struct {
	items []world.Assignment
	counts
}

func newTally() *tally {
	return &tally{shares: map[string]share{}, load: map[string]int{}, nodes: map[string]struct{}{}}
}

// resetTally begins to count from nothing.
func (m *Metrics) resetTally(w *world.World) {
	m.tally = newTally()
	m.assignments.Reset()
	for _, name := range w.Nodes() {
		m.tally.nodes[name] = struct{}{}
	}
}

// countDecision counts a new decision.
func (m *Metrics) countDecision(w *world.World, d *egressip.Assigner, overlapped int) {
	for _, name := range d.Anew() {
		m.tally.replaceShare(name, shareOf(w.EgressIP(name), d.Last()[name]))
	}
	for name := range m.tally.nodes {
		m.countAssigned(w.Node(name), name)
	}
	clear(m.tally.nodes)
	m.standingBy.Set(float64(overlapped))
	m.unassigned.Set(float64(m.tally.sum.lacking))
	m.addresses.Set(float64(m.tally.sum.addresses))
	m.conflicts.Set(float64(m.tally.sum.conflicts))
}

// countAssigned tells of an egress node, or one that has addresses, how many it has.
func (m *Metrics) countAssigned(n *world.Node, name string) {
	labelled := false
	if n != nil {
		_, labelled = n.Labels[world.AssignableLabel]
	}
	if load := m.tally.load[name]; n != nil && (labelled || load > 0) {
		m.assignments.WithLabelValues(name).Set(float64(load))
		return
	}
	m.assignments.DeleteLabelValues(name)
}

// shareOf is nothing of an EgressIP that is gone.
func shareOf(e *world.EgressIP, d egressip.Decision) share {
	if e == nil {
		return share{}
	}
	s := share{d.Items, counts{addresses: len(e.IPs)}}
	if len(d.Conditions) > 0 && d.Conditions[0].Status != "True" {
		s.lacking = 1
	}
	for _, c := range d.Conditions {
		if c.Type == egressip.ConditionAddressConflict && c.Status == "True" {
			s.conflicts = 1
		}
	}
	return s
}

// replaceShare replaces what an EgressIP adds.
func (t *tally) replaceShare(name string, now share) {
	t.addShare(t.shares[name], -1)
	t.addShare(now, 1)
	if t.shares[name] = now; now.addresses == 0 && now.lacking == 0 {
		delete(t.shares, name)
	}
}

func (t *tally) addShare(s share, n int) {
	for _, i := range s.items {
		t.nodes[i.Node] = struct{}{}
		if t.load[i.Node] += n; t.load[i.Node] == 0 {
			delete(t.load, i.Node)
		}
	}
	t.sum.lacking += n * s.lacking
	t.sum.conflicts += n * s.conflicts
	t.sum.addresses += n * s.addresses
}
