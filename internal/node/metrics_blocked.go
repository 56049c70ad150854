package node

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/feature/gateway"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/nft"
	"github.com/egret-net/egret/internal/world"
)

// blocked counts packets of the cluster network that were on their way out without translation, and were dropped. The
// targets count; they are read when somebody asks. They keep counting when a flow is written again (OpenFlow 1.3 and
// later copies counters), and start again with ovs-vswitchd, with a changed nftables rule and with a boot; here the sum
// goes on, less what came after the last look.
type blocked struct {
	log   *slog.Logger
	read  []counterReading
	total *prometheus.Desc

	mu   sync.Mutex
	sums map[string]sum
}

// counterReading asks one target; the result is by something that tells its counters apart. path is the label of what
// it reads.
type counterReading struct {
	path string
	ask  func(context.Context) (map[string]uint64, error)
}

// sum is a counter that never falls.
type sum struct {
	path             string
	total, lastCount uint64
}

// patience bounds one look at the targets.
const patience = 3 * time.Second

func newBlocked(read []counterReading, log *slog.Logger) *blocked {
	return &blocked{log: log, read: read, sums: map[string]sum{},
		total: prometheus.NewDesc("egret_node_blocked_packets_total",
			"Packets of the cluster network that were not translated and were dropped on their way out, by where: "+
				"bridge (the gateway bridge's flows), router (its flows for packets of pods with an egress IP that "+
				"their own node's gateway router gave the node's address), host (the host's forwarding), link (links "+
				"that egress IPs are on; nothing is counted while there is none).",
			[]string{"path"}, nil)}
}

// countBlocked registers it for this node's own targets. packets counts for a flow.
func (m *Metrics) countBlocked(c *world.Config, packets func(context.Context, plan.Flow) (uint64, error),
	log *slog.Logger) {
	count := func(ctx context.Context, flows []plan.Flow) (map[string]uint64, error) {
		out := map[string]uint64{}
		for _, f := range flows {
			n, err := packets(ctx, f)
			if err != nil {
				return nil, err
			}
			out[f.Match] = n
		}
		return out, nil
	}
	bridge := func(ctx context.Context) (map[string]uint64, error) { return count(ctx, gateway.Untranslated(c)) }
	router := func(ctx context.Context) (map[string]uint64, error) { return count(ctx, egressip.LeakFlows(c)) }
	host := func(ctx context.Context) (map[string]uint64, error) {
		rules, err := nft.Packets(ctx, plan.ForwardChain)
		for name := range rules {
			if !strings.HasPrefix(name, plan.ForwardUntranslated) {
				delete(rules, name)
			}
		}
		return rules, err
	}
	link := func(ctx context.Context) (map[string]uint64, error) {
		return nft.Packets(ctx, plan.ChainEgressIPGuard.ID().Name)
	}
	m.Registry.MustRegister(newBlocked([]counterReading{{"bridge", bridge}, {"router", router}, {"host", host},
		{"link", link}}, log))
}

// Describe is part of prometheus.Collector.
func (b *blocked) Describe(out chan<- *prometheus.Desc) { out <- b.total }

// Collect is part of prometheus.Collector. An unreadable counter keeps its value.
func (b *blocked) Collect(out chan<- prometheus.Metric) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, r := range b.read {
		counts, err := r.ask(ctx)
		if err != nil {
			b.log.Debug("could not count dropped packets", "path", r.path, "error", err)
		}
		for what, n := range counts {
			b.addCounter(r.path, what, n)
		}
		out <- prometheus.MustNewConstMetric(b.total, prometheus.CounterValue, float64(b.totalOf(r.path)), r.path)
	}
}

// addCounter takes a counter's present value; a lower one than before has started again.
func (b *blocked) addCounter(path, what string, n uint64) {
	s := b.sums[path+" "+what]
	grown := n
	if n >= s.lastCount {
		grown = n - s.lastCount
	}
	b.sums[path+" "+what] = sum{path, s.total + grown, n}
}

func (b *blocked) totalOf(path string) (total uint64) {
	for _, s := range b.sums {
		if s.path == path {
			total += s.total
		}
	}
	return total
}
