package main

import (
	"context"
	"slices"
	"time"

	"github.com/egret-net/egret/test/harness"
)

// noRoom is how many frames the switches had no room for since then. A switch that was itself stopped, killed or
// powered off does not count: what it lost is that fault's, and its counters may have begun anew.
func (r *run) noRoom(ctx context.Context, begin time.Time, was map[string]harness.Drops) (int, error) {
	now, err := harness.DropsOf(ctx, r.cluster.Cluster.Cluster)
	sum := 0
	for node, drops := range now {
		disturbed := slices.ContainsFunc(r.record.windows, func(w window) bool {
			return w.node == node && (w.object == "ovs-vswitchd" || w.kind == power) && w.overlaps(begin, time.Now())
		})
		if !disturbed {
			sum += drops.Since(was[node]).Overflows()
		}
	}
	return sum, err
}
