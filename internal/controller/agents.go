package controller

import (
	"context"
	"log/slog"
	"time"

	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/probe"
)

// Agents' Leases are read, not watched. A list that came proves that the API server could be asked up to now, which the
// silence of a watch does not; and a renewal wakes nobody.
const (
	// readsPerLease is how often Leases are read in the time that the shortest of them lasts. Between two reads there
	// are at least readAtMost, and at most readAtLeast.
	readsPerLease = 8
	readAtMost    = time.Second
	readAtLeast   = 5 * time.Second
	readTimeout   = 5 * time.Second
)

// ReadLeases returns the Leases of all agents, by node, as they are now.
type ReadLeases func(context.Context) (map[string]kube.AgentLease, error)

// FollowAgents reads agents' Leases until ctx is done, and tells whose agents are dead. All controllers do so: one that
// begins to lead knows at once.
func FollowAgents(ctx context.Context, read ReadLeases, tell func(context.Context, probe.AgentChange),
	log *slog.Logger) {
	judge, start, failed := probe.LeaseJudge{}, time.Now(), false
	for pause := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		leases, err := readLeases(ctx, read)
		if err != nil {
			if !failed && ctx.Err() == nil {
				log.Warn("which agents live is not known; trying again", "error", err)
			}
			failed, pause = true, readAtMost
			continue
		}
		failed, pause = false, untilNextRead(leases)
		for _, change := range judge.Look(time.Since(start), leases) {
			tell(ctx, change)
		}
	}
}

func readLeases(ctx context.Context, read ReadLeases) (map[string]probe.Lease, error) {
	short, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	all, err := read(short)
	out := make(map[string]probe.Lease, len(all))
	for node, l := range all {
		out[node] = probe.Lease{Version: l.Version, Lasts: probe.Lasting(l.Lasts)}
	}
	return out, err
}

func untilNextRead(leases map[string]probe.Lease) time.Duration {
	pause := readAtLeast
	for _, l := range leases {
		pause = min(pause, l.Lasts/readsPerLease)
	}
	return max(pause, readAtMost)
}
