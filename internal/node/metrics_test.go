package node

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/metrics/metricstest"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/ovn"
	"github.com/egret-net/egret/internal/world"
)

// TestBlockedNeverFalls: a counter that starts again adds to what was counted, and one that cannot be read stays.
func TestBlockedNeverFalls(t *testing.T) {
	counts := map[string]uint64{"a": 5, "b": 1}
	var err error
	b := newBlocked([]counterReading{
		{"bridge", func(context.Context) (map[string]uint64, error) { return counts, err }},
		{"host", func(context.Context) (map[string]uint64, error) { return nil, nil }},
	}, slog.New(slog.DiscardHandler))
	registry := prometheus.NewRegistry()
	registry.MustRegister(b)
	for _, step := range []struct {
		a    uint64
		err  error
		want string
	}{{5, nil, "6"}, {7, nil, "8"}, {7, errors.New("away"), "8"}, {2, nil, "10"}, {3, nil, "11"}} {
		counts["a"], err = step.a, step.err
		want := `# HELP egret_node_blocked_packets_total Packets of the cluster network that were not translated and were dropped on their way out, by where: bridge (the gateway bridge's flows), router (its flows for packets of pods with an egress IP that their own node's gateway router gave the node's address), host (the host's forwarding), link (links that egress IPs are on; nothing is counted while there is none).
# TYPE egret_node_blocked_packets_total counter
egret_node_blocked_packets_total{path="bridge"} ` + step.want + `
egret_node_blocked_packets_total{path="host"} 0
`
		if e := testutil.GatherAndCompare(registry, strings.NewReader(want)); e != nil {
			t.Fatal(e)
		}
	}
}

// TestRoundsAreCounted: rounds by result, planes by step, refused rows.
func TestRoundsAreCounted(t *testing.T) {
	m := NewMetrics()
	m.countRound(Outcome{Duration: time.Millisecond})
	m.countRound(Outcome{Err: errors.New("away")})
	refused := &plane.Refused{Plane: "nft", Owner: plan.Owner{Feature: "egressip"}, Row: "r", Err: errors.New("no")}
	m.countRound(Outcome{Refused: []*plane.Refused{refused}})
	m.countStep("nft", "grow", time.Millisecond, errors.Join(refused, refused))
	m.countCall("ADD", time.Millisecond, nil)
	want := `# HELP egret_node_refused_rows_total Rows that a target refused, counted each time they were tried.
# TYPE egret_node_refused_rows_total counter
egret_node_refused_rows_total{plane="nft"} 2
# HELP egret_node_rounds_total Rounds of the agent, by result: ok, refused (single rows), failed.
# TYPE egret_node_rounds_total counter
egret_node_rounds_total{result="failed"} 1
egret_node_rounds_total{result="ok"} 1
egret_node_rounds_total{result="refused"} 1
`
	if err := testutil.GatherAndCompare(m.Registry, strings.NewReader(want), "egret_node_rounds_total",
		"egret_node_refused_rows_total"); err != nil {
		t.Error(err)
	}
}

// TestTimedPlanesHoldTheSameTables: a plane that is timed is still left alone by what does not concern it, and tells of
// each step.
func TestTimedPlanesHoldTheSameTables(t *testing.T) {
	var told []string
	planes := plane.Timed([]plane.Plane{plane.For(plan.InNB, ovn.NewFake())}, func(_, step string, _ time.Duration,
		err error) {
		told = append(told, step)
	})
	if len(plane.Concerned(planes, plan.InFlows)) != 0 || len(plane.Concerned(planes, plan.InNB)) != 1 {
		t.Error("a timed plane is concerned by other tables than before")
	}
	if err := plane.Apply(t.Context(), planes, plan.New()); err != nil || strings.Join(told, " ") != "grow shrink" {
		t.Errorf("told %v, %v", told, err)
	}
}

// TestMetricsAreDocumented: the page has all metrics, and all places where packets are blocked.
func TestMetricsAreDocumented(t *testing.T) {
	m := NewMetrics()
	none := func(context.Context, plan.Flow) (uint64, error) { return 0, nil }
	m.countBlocked(compiletest.Small("n1", world.SharedGateway).Config, none, slog.New(slog.DiscardHandler))
	metricstest.Documented(t, "egret-node", m.Registry)
	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	page := metricstest.Page(t)
	for _, f := range families {
		if f.GetName() != "egret_node_blocked_packets_total" {
			continue
		}
		for _, series := range f.GetMetric() {
			if path := `path="` + series.GetLabel()[0].GetValue() + `"`; !strings.Contains(page, path) {
				t.Errorf("docs/metrics.md lacks %s", path)
			}
		}
	}
}
