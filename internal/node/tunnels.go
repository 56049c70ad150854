package node

import (
	"context"
	"time"

	"github.com/egret-net/egret/internal/plane/ovs"
	"github.com/egret-net/egret/internal/tunnel"
	"github.com/egret-net/egret/internal/world"
)

// tunnelReports is where the state of tunnels is read (ovs.DB).
type tunnelReports interface {
	Tunnels(context.Context) ([]ovs.Tunnel, error)
	TunnelsChanged() <-chan struct{}
}

// followTunnels carries what tunnel.Machine decides of the tunnels to other nodes into the loop, until ctx ends.
func (a *Agent) followTunnels(ctx context.Context, db tunnelReports) {
	var machine tunnel.Machine
	var sessions []tunnel.Session
	for alone := false; ; {
		// else what was reported last stands until the database is back, which is a change
		if all, err := db.Tunnels(ctx); err == nil {
			sessions = sessionsOf(all)
		}
		r := machine.Step(sessions, time.Now())
		a.tunnelsChange(ctx, r, alone)
		alone = r.Alone
		select {
		case <-ctx.Done():
			return
		case <-db.TunnelsChanged():
		case <-timeChannel(r.Wake):
		}
	}
}

func sessionsOf(all []ovs.Tunnel) []tunnel.Session {
	sessions := make([]tunnel.Session, 0, len(all))
	for _, t := range all {
		sessions = append(sessions, tunnel.Session(t))
	}
	return sessions
}

// tunnelsChange brings what is new into the loop.
func (a *Agent) tunnelsChange(ctx context.Context, r tunnel.Result, wasAlone bool) {
	for _, c := range r.Changes {
		a.log.Info("tunnel to another node", "node", c.Node, "state", c.Is, "was", c.Was)
	}
	if r.Alone != wasAlone {
		a.log.Info("whether any other node answers", "answers", !r.Alone, "silent", r.Silent)
	}
	if len(r.Changes) == 0 && r.Alone == wasAlone {
		return
	}
	// its only error is that the agent ends
	_ = a.loop.Offer(ctx, func(w *world.World) {
		for _, c := range r.Changes {
			w.SetTunnel(c.Node, c.Is)
			if c.Was == world.TunnelDown && c.Is == world.TunnelUp {
				a.holding.facts.Back = true
			}
		}
		a.holding.takeAlone(r.Alone)
	})
}
