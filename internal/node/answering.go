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
	server := peer.Server{Asks: func(from netip.Addr) bool { return isManagement(a.config, from) },
		Followed: a.awaitFollowed, Log: a.log}
	a.serveSubnets(ctx, port, func(ctx context.Context, l net.Listener) error {
		a.clearing.listeners.Add(1)
		defer a.clearing.listeners.Add(-1)
		a.announcePort(port)
		return server.Serve(ctx, l)
	}, func(err error) {
		if a.clearing.listeners.Load() == 0 {
			a.announcePort(0)
		}
		a.log.Error("other agents cannot ask this one what it has followed at one of its addresses; where they can at "+
			"none, they lead pods here unasked; trying again", "error", err, "flag", "--agent-port")
	})
}

// announcePort says in the EgressNode where this agent answers.
func (a *Agent) announcePort(port int) {
	if a.clearing.answersAt.Swap(uint32(port)) != uint32(port) {
		a.loop.Again()
	}
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
func (a *Agent) askAgent(from netip.Addr, to netip.AddrPort) error {
	newest, err := peer.Ask(context.Background(), from, to, a.source.Seen())
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
