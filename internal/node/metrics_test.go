package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/metrics/collectors"
	"github.com/egret-net/egret/internal/metrics/metricstest"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/conntrack"
	"github.com/egret-net/egret/internal/plane/ovn"
	"github.com/egret-net/egret/internal/ref"
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

// TestPortsAreCounted: each held address of the primary network has the ports of the remote that needs most of them;
// connections are read once in 30 s, not at all while nothing is held, and a failed look changes nothing.
func TestPortsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var entries []conntrack.Entry
		for i := range uint16(5) {
			e, at := conntrack.Entry{Proto: 6}, netip.MustParseAddr("172.18.0.33")
			e.Orig = conntrack.Tuple{Src: netip.MustParseAddr("10.244.1.5"), Dst: outsideOf(i % 2), SrcPort: i,
				DstPort: 80}
			e.Reply = conntrack.Tuple{Src: e.Orig.Dst, Dst: at, SrcPort: 80, DstPort: i}
			entries = append(entries, e)
		}
		var err error
		reads, m := 0, NewMetrics()
		m.registerPorts(&ports{log: slog.New(slog.DiscardHandler), held: m.heldIPs,
			read: func(context.Context) ([]conntrack.Entry, error) {
				reads++
				if err != nil {
					return nil, err
				}
				return entries, nil
			}})
		expectPorts := func(what string, wantReads int, want string) {
			t.Helper()
			e := testutil.GatherAndCompare(m.Registry, strings.NewReader(want), "egret_node_snat_ports_used")
			if e != nil || reads != wantReads {
				t.Errorf("%s: %d reads, want %d: %v", what, reads, wantReads, e)
			}
		}
		series := func(n int) string {
			return "# HELP egret_node_snat_ports_used Ports of an egress IP that connections use to the remote " +
				"address, port and protocol that needs most of them.\n# TYPE egret_node_snat_ports_used gauge\n" +
				fmt.Sprintf("egret_node_snat_ports_used{ip=\"172.18.0.33\"} %d\n", n)
		}
		expectPorts("nothing is held", 0, "")
		h := &world.Host{Primary: []netip.Prefix{netip.MustParsePrefix("172.18.0.2/16")}}
		holding := map[world.EgressAddress]ref.Since{}
		for _, ip := range []string{"172.18.0.33", "192.0.2.1"} {
			holding[world.EgressAddress{Object: "e", IP: netip.MustParseAddr(ip)}] = 0
		}
		m.countReport(Report{Holding: holding}, h)
		expectPorts("at first", 1, series(3))
		entries = entries[:2]
		time.Sleep(portsFreshness - 1)
		expectPorts("still fresh", 1, series(3))
		time.Sleep(time.Nanosecond)
		expectPorts("no longer fresh", 2, series(1))
		err = errors.New("away")
		time.Sleep(portsFreshness)
		expectPorts("a failed look", 3, series(1))
		expectPorts("soon after it", 3, series(1))
	})
}

func outsideOf(i uint16) netip.Addr { return netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}) }

// TestMetricsAreDocumented: the page has all metrics, and all places where packets are blocked.
func TestMetricsAreDocumented(t *testing.T) {
	m := NewMetrics()
	none := func(context.Context, plan.Flow) (uint64, error) { return 0, nil }
	m.countBlocked(compiletest.Small("n1", world.SharedGateway).Config, none, slog.New(slog.DiscardHandler))
	m.countPorts("n1", nil, nil, slog.New(slog.DiscardHandler))
	m.Registry.MustRegister(collectors.NewCertificates(nil))
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
