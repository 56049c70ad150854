package main

import (
	"context"
	"slices"
	"time"

	"github.com/egret-net/egret/test/harness"
)

// overflows are the frames that the nodes' switches had no room for so far, by node.
func (c *cluster) overflows(ctx context.Context) (map[string]int, error) {
	all := map[string]int{}
	for _, n := range c.Nodes() {
		count, err := harness.Overflows(ctx, c.Cluster.Cluster, n.Name)
		if err != nil {
			return nil, err
		}
		all[n.Name] = count
	}
	return all, nil
}

// noRoom is how many frames the switches had no room for since then. A switch that was itself stopped, killed or
// powered off does not count: what it lost is that fault's, and its counters may have begun anew.
func (r *run) noRoom(ctx context.Context, begin time.Time, was map[string]int) (int, error) {
	now, err := r.cluster.overflows(ctx)
	sum := 0
	for node, count := range now {
		disturbed := slices.ContainsFunc(r.record.windows, func(w window) bool {
			return w.node == node && (w.object == "ovs-vswitchd" || w.kind == power) && w.overlaps(begin, time.Now())
		})
		if !disturbed {
			sum += max(0, count-was[node]) // the counter of a pod's port goes with the pod
		}
	}
	return sum, err
}
