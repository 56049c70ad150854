package node

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/egret-net/egret/internal/metrics"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/world"
)

// Metrics are the agent's, in a registry of their own. Their documentation is docs/metrics.md.
type Metrics struct {
	Registry *prometheus.Registry
	held     prometheus.Gauge
	paused   prometheus.Gauge
	problems prometheus.Gauge
	rounds   *prometheus.CounterVec
	round    prometheus.Histogram
	apply    *prometheus.HistogramVec
	refused  *prometheus.CounterVec
	cni      *prometheus.HistogramVec
	asks     *prometheus.CounterVec

	// primaryIPs are the held addresses of the primary network.
	primaryIPs atomic.Pointer[[]netip.Addr]
}

// NewMetrics registers all metrics of the agent's own doings; what is read from targets is registered by countBlocked.
func NewMetrics() *Metrics {
	seconds := prometheus.ExponentialBuckets(0.001, 2, 15) // 1 ms to 16 s
	m := &Metrics{
		Registry: prometheus.NewRegistry(),
		held: prometheus.NewGauge(prometheus.GaugeOpts{Name: "egret_node_held_egress_ips",
			Help: "Egress IPs that this node translates to and answers for."}),
		paused: prometheus.NewGauge(prometheus.GaugeOpts{Name: "egret_node_held_back_pods",
			Help: "Pods that started with traffic to outside dropped, because no node was ready for their EgressIP."}),
		problems: prometheus.NewGauge(prometheus.GaugeOpts{Name: "egret_node_problems",
			Help: "Problems that this node's EgressNode tells of."}),
		rounds: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "egret_node_rounds_total",
			Help: "Rounds of the agent, by result: ok, refused (single rows), failed."}, []string{"result"}),
		round: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "egret_node_round_seconds",
			Help: "Time of one round: all planes that a change concerns.", Buckets: seconds}),
		apply: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "egret_node_plane_apply_seconds",
			Help: "Time of one plane's part of a round, by plane and step (grow, shrink).", Buckets: seconds},
			[]string{"plane", "step"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "egret_node_refused_rows_total",
			Help: "Rows that a target refused, counted each time they were tried."}, []string{"plane"}),
		cni: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "egret_node_cni_seconds",
			Help: "Time of one call of the CNI plugin, by command and result (ok, error).", Buckets: seconds},
			[]string{"command", "result"}),
		asks: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "egret_node_questions_total",
			Help: "Questions to other agents whether they have followed what this one has seen, by result: followed, " +
				"failed."}, []string{"result"}),
	}
	m.Registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), metrics.NewBuildInfo(),
		m.held, m.paused, m.problems, m.rounds, m.round, m.apply, m.refused, m.cni, m.asks)
	return m
}

// countRound counts one round.
func (m *Metrics) countRound(o Outcome) {
	result := "ok"
	switch {
	case o.Err != nil || o.Left != nil:
		result = "failed"
	case len(o.Refused) > 0:
		result = "refused"
	}
	m.rounds.WithLabelValues(result).Inc()
	m.round.Observe(o.Duration.Seconds())
}

// countStep is a plane.Took.
func (m *Metrics) countStep(name, step string, took time.Duration, err error) {
	m.apply.WithLabelValues(name, step).Observe(took.Seconds())
	for range plane.Refusals(err) {
		m.refused.WithLabelValues(name).Inc()
	}
}

// countCall counts one call of the CNI plugin.
func (m *Metrics) countCall(command string, took time.Duration, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	m.cni.WithLabelValues(command, result).Observe(took.Seconds())
}

// countQuestion counts one question to another agent.
func (m *Metrics) countQuestion(err error) {
	result := "followed"
	if err != nil {
		result = "failed"
	}
	m.asks.WithLabelValues(result).Inc()
}

func (m *Metrics) countReport(r Report, h *world.Host) {
	primary := primaryAddresses(r, h)
	m.primaryIPs.Store(&primary)
	m.held.Set(float64(len(r.Holding)))
	m.problems.Set(float64(len(r.Problems)))
}

func (m *Metrics) heldIPs() []netip.Addr {
	if held := m.primaryIPs.Load(); held != nil {
		return *held
	}
	return nil
}
