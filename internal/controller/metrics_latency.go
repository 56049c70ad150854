package controller

import (
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/world"
)

// latencies measure how long what was decided takes to be so. Moves under way when another controller takes over are
// not measured.
type latencies struct {
	failover    *prometheus.HistogramVec
	programming prometheus.Histogram
	underway    map[claim]*journey
}

// claim is one address of one EgressIP.
type claim struct {
	egressIP string
	ip       netip.Addr
}

// journey is an address on its way to the node that was decided.
type journey struct {
	node    string    // "": none can host it now
	cause   string    // why it left the last node that held it; "": it comes from none
	left    time.Time // when the controller saw that
	written time.Time // when the status that names the node was written; zero: not yet
}

func newLatencies() *latencies {
	buckets := []float64{.025, .05, .1, .2, .3, .5, .75, 1, 1.5, 2, 3, 5, 10, 30, 60}
	return &latencies{
		failover: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "egret_controller_failover_seconds",
			Help: "Time from when the controller saw that a node cannot host an egress IP any more to when the next " +
				"node said that it holds it, by cause.", Buckets: buckets}, []string{"cause"}),
		programming: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "egret_controller_programming_seconds",
			Help: "Time from when a status that names a node for an egress IP was written to when the node said that " +
				"it holds it.", Buckets: buckets}),
		underway: map[claim]*journey{},
	}
}

// allDecided notes all new decisions.
func (l *latencies) allDecided(d *egressip.Assigner, now time.Time) {
	for _, name := range d.Anew() {
		l.noteDecision(name, d.Last()[name], now)
	}
}

// noteDecision notes which addresses of an EgressIP go where. One that moves on before it arrived keeps its time.
func (l *latencies) noteDecision(name string, d egressip.Decision, now time.Time) {
	for _, e := range d.Events {
		if !e.IP.IsValid() {
			continue
		}
		c := claim{name, e.IP}
		next := &journey{node: nodeOf(d.Items, e.IP), cause: e.Cause, left: now}
		if before := l.underway[c]; before != nil && before.cause != "" {
			next.cause, next.left = before.cause, before.left
		}
		if e.Cause == egressip.CauseSpec {
			delete(l.underway, c)
			continue
		}
		l.underway[c] = next
	}
}

// nodeOf is the node that an address is assigned to, or "".
func nodeOf(items []world.Assignment, ip netip.Addr) string {
	for _, i := range items {
		if i.IP == ip {
			return i.Node
		}
	}
	return ""
}

// noteWrite notes that an object's status is written.
func (l *latencies) noteWrite(e *world.EgressIP, now time.Time) {
	for _, i := range e.Items {
		if j := l.underway[claim{e.Name, i.IP}]; j != nil && j.node == i.Node && j.written.IsZero() {
			j.written = now
		}
	}
}

// noteArrivals looks which addresses of an EgressIP have arrived.
func (l *latencies) noteArrivals(w *world.World, name string, now time.Time) {
	e := w.EgressIP(name)
	if e == nil {
		return
	}
	for _, ip := range e.IPs {
		c := claim{name, ip}
		j := l.underway[c]
		if j == nil || j.node == "" || !w.Holds(j.node, name, ip) {
			continue
		}
		if j.cause != "" {
			l.failover.WithLabelValues(j.cause).Observe(now.Sub(j.left).Seconds())
		}
		if !j.written.IsZero() {
			l.programming.Observe(now.Sub(j.written).Seconds())
		}
		delete(l.underway, c)
	}
}

// forgetGone drops what is under way for EgressIPs that are no more; with nil, everything.
func (l *latencies) forgetGone(w *world.World) {
	for c := range l.underway {
		if w == nil || w.EgressIP(c.egressIP) == nil {
			delete(l.underway, c)
		}
	}
}
