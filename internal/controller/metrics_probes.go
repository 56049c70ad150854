package controller

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/egret-net/egret/internal/world"
)

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

// showAllUnreachable shows of each node why it is unreachable. Only the leader shows it.
func (m *probeMetrics) showAllUnreachable(w *world.World) {
	for _, name := range w.Nodes() {
		m.showUnreachable(name, w.Unreachable(name))
	}
}

func (m *probeMetrics) showUnreachable(node string, why world.Unreachability) {
	m.unreachable.DeletePartialMatch(prometheus.Labels{"node": node})
	if why != "" {
		m.unreachable.WithLabelValues(node, string(why)).Set(1)
	}
}
