package controller_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/egret-net/egret/internal/controller"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/metrics/collectors"
	"github.com/egret-net/egret/internal/metrics/metricstest"
	"github.com/egret-net/egret/internal/probe"
	"github.com/egret-net/egret/internal/world"
)

func TestMetricsAreDocumented(t *testing.T) {
	m := controller.NewMetrics()
	m.Registry.MustRegister(collectors.NewCertificates(nil))
	metricstest.Documented(t, "egret-controller", m.Registry)
}

// TestOnlyTheLeaderTellsOfTheCluster: the sum of a gauge over a controller that has led and its successor is what the
// successor tells, also where a node came back in between.
func TestOnlyTheLeaderTellsOfTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, c, m, stop := oneAssigned(t, time.Millisecond, "n1", "n2")
		a.putEgressIP(anEgressIP("lacking", 0, "192.0.2.1"))
		eventually(t, "refusal", "False", func() string { return string(a.condition("lacking", "Assigned").Status) })
		c.Found(t.Context(), probe.Change{Node: "n1", Why: world.NodeUnreachable})
		eventually(t, "assignment", "n2=172.18.0.33", func() string { return a.assigned("e") })
		want := []string{"egret_controller_assigned_egress_ips", "egret_controller_egress_address_info",
			"egret_controller_fallback_objects", "egret_controller_leader", "egret_controller_node_unreachable",
			"egret_controller_not_ready_objects", "egret_controller_unassigned_egressips",
			"ovnkube_clustermanager_num_egress_ips"}
		if have := strings.Join(gauges(t, m), " "); have != strings.Join(want, " ") {
			t.Errorf("the leader tells of %s, want %s", have, want)
		}
		stop()
		synctest.Wait()
		if have := gauges(t, m); len(have) > 0 {
			t.Errorf("a controller that no longer leads still tells of %v", have)
		}
		c.Found(t.Context(), probe.Change{Node: "n1"})
		c.Found(t.Context(), probe.Change{Node: "n2", Why: world.NodeUnreachable})
		synctest.Wait()
		if have := gauges(t, m); len(have) > 0 {
			t.Errorf("a controller that does not lead tells of %v", have)
		}
		c.Lead(t.Context())
		time.Sleep(time.Second) // it decides
		if have := strings.Join(gauges(t, m), " "); have != strings.Join(want, " ") {
			t.Errorf("the next leader tells of %s, want %s", have, want)
		}
	})
}

// TestStandbyTellsOfNothing: a controller that has never led tells of nothing, either.
func TestStandbyTellsOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, m := newAPI(0), controller.NewMetrics()
		a.putNode(aNode("n1", 2))
		c := controller.New(config(), all.ServedKinds(), a, a, m, slog.New(slog.NewTextHandler(io.Discard, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go a.run(ctx)
		go c.Run(ctx)
		c.Found(ctx, probe.Change{Node: "n1", Why: world.NodeUnreachable})
		synctest.Wait()
		if have := gauges(t, m); len(have) > 0 {
			t.Errorf("a controller that never led tells of %v", have)
		}
	})
}

// gauges returns the names of the controller's own gauges that are not 0, sorted. The one about the program itself is
// not among them.
func gauges(t *testing.T, m *controller.Metrics) (out []string) {
	t.Helper()
	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		own := strings.HasPrefix(f.GetName(), "egret_") || strings.HasPrefix(f.GetName(), "ovnkube_")
		if !own || f.GetType() != dto.MetricType_GAUGE || f.GetName() == "egret_build_info" {
			continue
		}
		sum := 0.0
		for _, one := range f.GetMetric() {
			sum += one.GetGauge().GetValue()
		}
		if sum != 0 {
			out = append(out, f.GetName())
		}
	}
	return out
}
