package node

import (
	"context"
	"time"

	"github.com/egret-net/egret/internal/cni"
	"github.com/egret-net/egret/internal/metrics"
	"github.com/egret-net/egret/internal/node/cniserver"
	"github.com/egret-net/egret/internal/world"
)

// serveMetrics goes without when an address is taken: pods and egress IPs do not depend on it.
func (a *Agent) serveMetrics(ctx context.Context, o Options, t *targets) {
	a.metrics.countBlocked(&o.Config, t.flow.Packets, a.log)
	health := func() metrics.Health {
		short, cancel := context.WithTimeout(ctx, healthWait)
		defer cancel()
		alive := a.loop.Ask(short, func(*world.World) {}) == nil
		return metrics.Health{Alive: alive, Problems: a.silent()}
	}
	go func() {
		if err := metrics.ServeHealth(ctx, o.Healthz, health); err != nil {
			a.log.Error("nobody can ask whether this agent lives", "error", err)
		}
	}()
	if err := metrics.Serve(ctx, o.Metrics, a.metrics.Registry, health, a.log); err != nil {
		a.log.Error("no metrics are served", "error", err)
	}
}

// healthWait is how long a round may take before the agent counts as stuck; ovs-ofctl and OVN are given up earlier.
const healthWait = 15 * time.Second

// serveCNI attaches pods once the node can; the runtime finds the configuration then, and the kubelet says Ready.
func (a *Agent) serveCNI(ctx context.Context, o Options) {
	l, err := cniserver.Listen(o.CNISocket)
	if err != nil {
		a.log.Error("pods cannot be attached", "error", err)
		return
	}
	go func() {
		if err := a.cni.Serve(ctx, l); err != nil {
			a.log.Error("the CNI server ended", "error", err)
		}
	}()
	if a.untilTrue(ctx, func() bool { return a.Ready() == nil }) != nil {
		return
	}
	if err := cni.WriteConflist(o.CNIConfDir, o.CNISocket); err != nil {
		a.log.Error("the runtime will not find Egret", "error", err)
		return
	}
	a.log.Info("pods can be attached", "subnets", a.Subnets())
}
