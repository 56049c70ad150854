package main

import (
	"context"
	"slices"
	"time"

	"github.com/egret-net/egret/test/harness"
)

// noRoom counts the frames that the switches had no room for since then. A switch that was itself stopped, killed or
// powered off does not count: it lost frames by that fault, and its counters may have started again. No switch may have
// dropped a recirculated frame.
func (r *run) noRoom(ctx context.Context, begin time.Time, was map[string]harness.Drops) (int, error) {
	now, err := harness.DropsOf(ctx, r.cluster.Cluster.Cluster)
	sum := 0
	for node, drops := range now {
		if n := drops.Since(was[node]).Recirculated(); n > 0 {
			r.fail("%s: the switch dropped %d frames that went through conntrack too often", node, n)
		}
		disturbed := slices.ContainsFunc(r.record.windows, func(w window) bool {
			return w.node == node && (w.object == "ovs-vswitchd" || w.kind == power) && w.overlaps(begin, time.Now())
		})
		if !disturbed {
			sum += drops.Since(was[node]).Overflows()
		}
	}
	return sum, err
}
