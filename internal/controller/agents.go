package controller

import (
	"context"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/probe"
	"github.com/egret-net/egret/internal/world"
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

// FollowAgents reads agents' Leases until ctx is done, and has the loop know whose agents are dead. All controllers do
// so: one that begins to lead knows at once.
func (c *Controller) FollowAgents(ctx context.Context, read ReadLeases) {
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
				c.log.Warn("which agents live is not known; trying again", "error", err)
			}
			failed, pause = true, readAtMost
			continue
		}
		failed, pause = false, untilNextRead(leases)
		for _, change := range judge.Look(time.Since(start), leases) {
			c.AgentFound(ctx, change)
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

// AgentFound takes in that an agent was found dead, or alive again.
func (c *Controller) AgentFound(ctx context.Context, change probe.AgentChange) {
	select {
	case c.agents <- change:
	case <-ctx.Done():
	}
}

// reach is what is known of nodes that do not count as reachable.
type reach struct {
	probed map[string]world.Unreachability // by the probes
	dead   map[string]bool                 // nodes whose agents have not renewed their Leases
}

func newReach() reach { return reach{map[string]world.Unreachability{}, map[string]bool{}} }

// whyUnreachable returns why a node does not count as reachable, or "". That nothing at all answers says more than that
// its agent is away.
func (r reach) whyUnreachable(node string) world.Unreachability {
	if why := r.probed[node]; why != "" {
		return why
	}
	if r.dead[node] {
		return world.AgentAway
	}
	return ""
}

// agentFound is AgentFound, in the loop.
func (c *Controller) agentFound(change probe.AgentChange) {
	c.log.Info("life of an agent, by its Lease", "node", change.Node, "dead", change.Dead,
		"silent", change.Silent.Round(time.Second))
	if delete(c.reach.dead, change.Node); change.Dead {
		c.reach.dead[change.Node] = true
	}
	c.applyChange(func(w *world.World) { c.setUnreachable(w, change.Node) })
}

// setUnreachable brings into the world whether a node counts as reachable. The leader tells people of it.
func (c *Controller) setUnreachable(w *world.World, node string) {
	why := c.reach.whyUnreachable(node)
	if w.Unreachable(node) == why {
		return
	}
	if w.SetUnreachable(node, why); c.outbox != nil {
		c.metrics.probes.showUnreachable(node, why)
		if n := w.Node(node); n != nil && why == world.AgentAway {
			c.postEvent(target{world.KindNode, node}, n.UID,
				decide.Event{Warning: true, Reason: handover.CauseAgentAway, Action: "Probe", Message: agentAway})
		}
	}
}

// agentAway is the Event about a node whose agent is dead.
const agentAway = "egret-node on this node does not show that it lives: what it has set up goes on as it is, new " +
	"pods get no network, and egress IPs move to nodes whose agents live. See whether egret-node runs here, and what " +
	"its log says"
