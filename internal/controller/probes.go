package controller

import (
	"context"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/egret-net/egret/internal/feature/zone"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/probe"
	"github.com/egret-net/egret/internal/world"
)

// witnesses is how many nodes besides its own a controller probes at least, so that it can tell a dead node from being
// cut off itself.
const witnesses = 3

// Prober is told which nodes to probe.
type Prober interface {
	Follow([]probe.Target, probe.Witnesses)
}

// Probe makes the prober of this controller, which runs on a node. It is called before Run. All controllers probe, so
// that one that begins to lead knows at once. Named are hosts outside that are witnesses, too.
func (c *Controller) Probe(self string, port int, tls probe.Files, named []netip.Addr) *probe.Prober {
	p := probe.New(probe.Options{
		Self: self, Total: c.world.Config.ReachabilityTimeout, Grace: probe.DefaultGrace, Port: port, TLS: tls,
		Log: c.log,
		RTT: func(d time.Duration) { c.metrics.probes.rtt.Observe(d.Seconds()) }, Tell: c.Found,
	})
	c.prober, c.self, c.named = p, self, named
	return p
}

// Found takes in what has become of a node that is probed.
func (c *Controller) Found(ctx context.Context, change probe.Change) {
	select {
	case c.found <- change:
	case <-ctx.Done():
	}
}

// Led takes in on which node the controller is that leads.
func (c *Controller) Led(ctx context.Context, node string) {
	select {
	case c.leaders <- node:
	case <-ctx.Done():
	}
}

func (c *Controller) takeReachability(change probe.Change) {
	c.log.Info("reachability of a node", "node", change.Node, "unreachable", change.Why,
		"not answering", change.NotAnswering, "silent", change.Silent.Round(time.Millisecond))
	if c.reach.probed[change.Node] = change.Why; change.Why == "" {
		delete(c.reach.probed, change.Node)
	}
	c.applyChange(kube.Change(func(w *world.World) {
		c.setUnreachable(w, change.Node)
		w.SetNotAnswering(change.Node, change.NotAnswering)
	}))
}

// followTargets tells the prober which nodes to probe, when they have become others.
func (c *Controller) followTargets() {
	if c.prober == nil || !c.strayed {
		return
	}
	c.strayed = false
	t, beside := probeTargets(c.world, c.self, c.leader), c.besideNodes()
	if !slices.EqualFunc(t, c.followed, sameTarget) || !reflect.DeepEqual(beside, c.beside) {
		c.doubtNewTargets(t)
		c.followed, c.beside = t, beside
		c.prober.Follow(t, beside)
	}
}

// doubtNewTargets takes nodes that were not probed before for not answering: a decision does not wait for the first
// change that the prober tells of.
func (c *Controller) doubtNewTargets(all []probe.Target) {
	if c.world.Config.ReachabilityTimeout == 0 {
		return // none comes
	}
	for _, t := range all {
		if !slices.ContainsFunc(c.followed, func(old probe.Target) bool { return sameTarget(old, t) }) {
			c.applyChange(kube.Change(func(w *world.World) { w.SetNotAnswering(t.Node, true) }))
		}
	}
}

func sameTarget(a, b probe.Target) bool {
	return a.Node == b.Node && slices.Equal(a.Addrs, b.Addrs) && slices.Equal(a.Direct, b.Direct)
}

// besideNodes are the witnesses beside the nodes, as this controller's node reaches them: by the primary network, as it
// does other nodes. A gateway that has an address of its link alone is not asked.
func (c *Controller) besideNodes() probe.Witnesses {
	n := c.world.Node(c.self)
	if n == nil {
		return probe.Witnesses{}
	}
	out := probe.Witnesses{From: primaryAddrs(n), Hosts: slices.Clone(c.named)}
	for _, g := range n.Gateways {
		if !g.IsLinkLocalUnicast() {
			out.Hosts = append(out.Hosts, g)
		}
	}
	return out
}

func primaryAddrs(n *world.Node) []netip.Addr {
	var out []netip.Addr
	for _, p := range n.Primary {
		out = append(out, p.Addr())
	}
	return out
}

// probeTargets are the nodes to probe: egress nodes, hosts of EgressServices, those that were found unreachable, the
// leader's for those that stand by, and others until there are enough witnesses. A node that can be the host of an
// EgressService is probed once it is: each can, where there is no selector.
func probeTargets(w *world.World, self, leader string) []probe.Target {
	var out []probe.Target
	var rest []*world.Node // the first that can be witnesses
	others, hosts := 0, serviceHosts(w)
	for _, name := range w.Nodes() {
		n := w.Node(name)
		if len(n.Subnets) == 0 || n.ChassisID == "" {
			continue // its agent has not set it up yet
		}
		_, labelled := n.Labels[world.AssignableLabel]
		if !labelled && !hosts[name] && w.Unreachable(name) == "" && name != leader {
			if len(rest) < witnesses && name != self && n.Ready {
				rest = append(rest, n)
			}
			continue
		}
		out = append(out, targetOf(n))
		if name != self {
			others++
		}
	}
	for _, n := range rest[:min(len(rest), max(0, witnesses-others))] {
		out = append(out, targetOf(n))
	}
	return out
}

func targetOf(n *world.Node) probe.Target {
	return probe.Target{Node: n.Name, Addrs: managementAddrs(n), Direct: primaryAddrs(n)}
}

// serviceHosts are the hosts of EgressServices, and those that were and go on translating.
func serviceHosts(w *world.World) map[string]bool {
	out := map[string]bool{}
	for _, key := range w.EgressServices() {
		s := w.EgressService(key)
		for _, i := range s.Items {
			out[i.Node] = true
		}
		for _, l := range s.Leaving {
			out[l.Node] = true
		}
	}
	return out
}

func managementAddrs(n *world.Node) []netip.Addr {
	var out []netip.Addr
	for _, s := range n.Subnets {
		out = append(out, zone.ManagementAddr(s))
	}
	return out
}

// probeMetrics are those of the probes.
type probeMetrics struct {
	rtt         prometheus.Histogram
	unreachable *prometheus.GaugeVec
}

func newProbeMetrics() probeMetrics {
	return probeMetrics{
		rtt: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "egret_controller_probe_rtt_seconds",
			Help:    "Time between a probe of a node and its answer, of each node every ten seconds.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 3, 10)}),
		unreachable: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "egret_controller_node_unreachable",
			Help: "1 for each node that is unreachable, by reason."}, []string{"node", "reason"}),
	}
}

// showUnreachable shows of each node why it is unreachable. Only the leader shows it.
func (m *Metrics) showUnreachable(w *world.World) {
	for _, name := range w.Nodes() {
		m.probes.showUnreachable(name, w.Unreachable(name))
	}
}

func (m *probeMetrics) showUnreachable(node string, why world.Unreachability) {
	m.unreachable.DeletePartialMatch(prometheus.Labels{"node": node})
	if why != "" {
		m.unreachable.WithLabelValues(node, string(why)).Set(1)
	}
}
