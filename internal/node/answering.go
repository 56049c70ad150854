package node

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/peer"
	"github.com/egret-net/egret/internal/world"
)

// serveAgents answers other agents on the management addresses until ctx is done. Port 0: nowhere.
func (a *Agent) serveAgents(ctx context.Context, port int) {
	server := peer.Server{Node: a.self, Asks: func(from netip.Addr) bool { return isManagement(a.config, from) },
		Followed: a.awaitFollowed, Log: a.log}
	a.serveSubnets(ctx, port, func(ctx context.Context, l net.Listener) error {
		a.clearing.listeners.Add(1)
		defer a.clearing.listeners.Add(-1)
		a.reportUnreachable(false)
		return server.Serve(ctx, l)
	}, func(err error) {
		a.reportUnreachable(a.clearing.listeners.Load() == 0)
		a.log.Error("other agents cannot ask this one what it has followed at one of its addresses; where they can at "+
			"none, they lead no pods here; trying again", "error", err, "flag", "--agent-port")
	})
}

// reportUnreachable notes whether no other agent can ask this one. It says all the same where it answers, so that it is
// not taken for an agent that need not be asked: pods wait until it can be.
func (a *Agent) reportUnreachable(is bool) {
	if a.clearing.unreachable.Swap(is) != is {
		a.loop.Again()
	}
}

// unreachableProblems is that no other agent can ask this one, as a problem.
func (a *Agent) unreachableProblems() []string {
	if !a.clearing.unreachable.Load() {
		return nil
	}
	return []string{fmt.Sprintf("no other agent can ask this one which pods it serves: another program has TCP port %d "+
		"of the management port. Pods that come to egress IPs of this node send nothing outside. Free the port, or give "+
		"another by --agent-port", a.config.AgentPort)}
}

// awaitFollowed returns when the targets hold what follows from all that another agent has seen, and no connection has
// a former source: a pod's datagrams would go on by it.
func (a *Agent) awaitFollowed(ctx context.Context, versions map[string]string) (newest map[string]string, err error) {
	if err := a.source.Reached(ctx, versions); err != nil {
		return nil, err
	}
	return a.source.Newest(), a.loop.WaitCleared(ctx)
}

// meetWithin is how long this agent may take to see what one that has answered has seen.
const meetWithin = time.Second

// askAgent asks another agent. One that has seen what this one's watches do not bring follows a history that has ended:
// etcd was restored, and its versions say nothing. An agent that is out of touch itself cannot know.
func (a *Agent) askAgent(node string, from netip.Addr, to netip.AddrPort) error {
	newest, err := peer.Ask(context.Background(), node, from, to, a.source.Seen())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), meetWithin)
	defer cancel()
	if err := a.source.Brought(ctx, newest); err != nil && a.holding.silence() < kube.Silent {
		return fmt.Errorf("the agent at %v has seen more than this one: %w", to, err)
	}
	return nil
}

// isManagement says whether an address is that of some node's management port.
func isManagement(c *world.Config, a netip.Addr) bool {
	return slices.ContainsFunc(c.ClusterSubnets, func(s world.ClusterSubnet) bool {
		subnet, err := a.Prefix(s.NodeLen)
		return err == nil && s.CIDR.Contains(a) && world.Nth(subnet, 2) == a
	})
}
