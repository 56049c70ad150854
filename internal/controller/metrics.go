package controller

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/egret-net/egret/internal/controller/tally"
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/metrics"
	"github.com/egret-net/egret/internal/world"
)

// Metrics are the controller's, in a registry of their own.
type Metrics struct {
	Registry    *prometheus.Registry
	leader      prometheus.Gauge
	decisions   prometheus.Histogram
	moves       *prometheus.CounterVec
	writes      *prometheus.CounterVec
	writeErrors *prometheus.CounterVec
	eventErrors prometheus.Counter
	probes      probeMetrics
	tally       *tally.Tally
	*latencies
	*upstream
}

// NewMetrics registers all metrics.
func NewMetrics() *Metrics {
	m := &Metrics{
		Registry: prometheus.NewRegistry(),
		leader: prometheus.NewGauge(prometheus.GaugeOpts{Name: "egret_controller_leader",
			Help: "1 while this controller leads."}),
		decisions: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "egret_controller_decision_seconds",
			Help: "Time of one decision about the whole cluster.", Buckets: prometheus.ExponentialBuckets(0.0001, 4,
				8)}),
		moves: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "egret_controller_moves_total",
			Help: "Egress IPs that left a node, by cause."}, []string{"cause"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "egret_controller_writes_total",
			Help: "Writes to the API server that it took."}, []string{"resource"}),
		writeErrors: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "egret_controller_write_errors_total",
			Help: "Writes to the API server that failed; they are tried again."}, []string{"resource"}),
		eventErrors: prometheus.NewCounter(prometheus.CounterOpts{Name: "egret_controller_event_errors_total",
			Help: "Events that were not posted."}),
		probes:    newProbeMetrics(),
		tally:     tally.New(),
		latencies: newLatencies(),
		upstream:  newUpstream(),
	}
	m.Registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), metrics.NewBuildInfo(),
		m.leader, m.decisions, m.moves, m.writes, m.writeErrors, m.eventErrors, m.failover, m.programming,
		m.unreachable, m.rebalanced, m.probes.rtt, m.probes.unreachable, m.tally)
	return m
}

// resetGauges takes back every gauge but the probes' times: the next leader tells the same of the cluster, and people
// add up what both controllers tell.
func (m *Metrics) resetGauges() {
	m.leader.Set(0)
	m.forgetGone(nil)
	m.tally.BeginCount(nil)
	m.probes.unreachable.Reset()
}

// countWrite counts what a write made different. Another controller counts the moves that it takes over before.
func (m *Metrics) countWrite(w *world.World, t target, events []decide.Event, now time.Time) {
	if e := w.EgressIP(t.key); t.kind == world.KindEgressIP && e != nil {
		m.latencies.noteWrite(e, now)
	}
	for _, e := range events {
		if e.Cause != "" {
			m.moves.WithLabelValues(e.Cause).Inc()
			m.countMove(e)
		}
	}
}
