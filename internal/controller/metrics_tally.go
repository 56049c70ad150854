package controller

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/world"
)

// tally is what the decisions about EgressIPs add up to, so that a round counts what was decided in it.
type tally struct {
	assignments *prometheus.GaugeVec
	unassigned  prometheus.Gauge
	standingBy  prometheus.Gauge
	conflicts   prometheus.Gauge
	addresses   prometheus.Gauge // OVN-Kubernetes' name, too

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
	t := &tally{
		assignments: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "egret_controller_assigned_egress_ips",
			Help: "Egress IPs assigned to a node."}, []string{"node"}),
		unassigned: prometheus.NewGauge(prometheus.GaugeOpts{Name: "egret_controller_unassigned_egressips",
			Help: "EgressIP objects that lack a node for an address."}),
		standingBy: prometheus.NewGauge(prometheus.GaugeOpts{Name: "egret_controller_overlapped_pods",
			Help: "Pods that more than one EgressIP selects: one serves them, the others stand by."}),
		conflicts: prometheus.NewGauge(prometheus.GaugeOpts{Name: "egret_controller_address_conflicts",
			Help: "EgressIP objects with an address that another machine says it has."}),
		addresses: prometheus.NewGauge(prometheus.GaugeOpts{Name: "ovnkube_clustermanager_num_egress_ips",
			Help: "The number of defined egress IP addresses."}),
	}
	t.beginCount()
	return t
}

// beginCount begins to count from nothing. Nodes are those to tell of.
func (t *tally) beginCount(nodes ...string) {
	t.shares, t.load, t.nodes, t.sum = map[string]share{}, map[string]int{}, map[string]struct{}{}, counts{}
	for _, name := range nodes {
		t.nodes[name] = struct{}{}
	}
	t.assignments.Reset()
	for _, g := range []prometheus.Gauge{t.unassigned, t.standingBy, t.conflicts, t.addresses} {
		g.Set(0)
	}
}

// countDecision counts a new decision.
func (t *tally) countDecision(w *world.World, d *egressip.Assigner, overlapped int) {
	for _, name := range d.Anew() {
		t.replaceShare(name, shareOf(w.EgressIP(name), d.Last()[name]))
	}
	for name := range t.nodes {
		t.countAssigned(w.Node(name), name)
	}
	clear(t.nodes)
	t.standingBy.Set(float64(overlapped))
	t.unassigned.Set(float64(t.sum.lacking))
	t.addresses.Set(float64(t.sum.addresses))
	t.conflicts.Set(float64(t.sum.conflicts))
}

// countAssigned tells of an egress node, or one that has addresses, how many it has.
func (t *tally) countAssigned(n *world.Node, name string) {
	labelled := false
	if n != nil {
		_, labelled = n.Labels[world.AssignableLabel]
	}
	if load := t.load[name]; n != nil && (labelled || load > 0) {
		t.assignments.WithLabelValues(name).Set(float64(load))
		return
	}
	t.assignments.DeleteLabelValues(name)
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
