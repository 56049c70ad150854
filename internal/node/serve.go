package node

import (
	"context"
	"net"
	"time"

	"github.com/egret-net/egret/internal/cni"
	"github.com/egret-net/egret/internal/metrics"
	"github.com/egret-net/egret/internal/metrics/collectors"
	"github.com/egret-net/egret/internal/node/cniserver"
	"github.com/egret-net/egret/internal/node/inspect"
	"github.com/egret-net/egret/internal/probe"
)

// serveMetrics goes without when an address is taken: pods and egress IPs do not depend on it.
func (a *Agent) serveMetrics(ctx context.Context, o Options) {
	health := func() metrics.Health { return a.currentHealth(ctx) }
	go func() {
		if err := metrics.ServeHealth(ctx, o.Healthz, health); err != nil {
			a.log.Error("nobody can ask whether this agent lives", "error", err)
		}
	}()
	a.metrics.Registry.MustRegister(collectors.NewCertificates(map[string]string{"metrics": o.Metrics.TLS.Cert,
		"health": o.Health.TLS.Cert}))
	if err := metrics.Serve(ctx, o.Metrics, a.metrics.Registry, health, a.log); err != nil {
		a.log.Error("no metrics are served", "error", err)
	}
}

// serveQuestions answers egret-node plan and trace. The agent does its work without it.
func (a *Agent) serveQuestions(ctx context.Context, socket string) {
	l, err := cniserver.Listen(socket)
	if err == nil {
		err = inspect.Serve(ctx, l, &a.inspector)
	}
	if err != nil {
		a.log.Error("egret-node plan and egret-node trace get no answers", "error", err)
	}
}

// serveHealth answers on the management addresses until ctx is done.
func (a *Agent) serveHealth(ctx context.Context, o Health) {
	a.serveSubnets(ctx, o.Port, func(ctx context.Context, l net.Listener) error {
		return probe.Serve(ctx, l, o.TLS, a.log)
	}, func(err error) {
		a.log.Error("controllers cannot ask this agent whether it lives; trying again", "error", err, "flag",
			"--egressip-node-healthcheck-port, the same for agents and controllers")
	})
}

// healthWait is how long a round may take before the agent counts as stuck; ovs-ofctl and OVN are given up earlier.
const healthWait = 15 * time.Second

// serveCNI attaches pods once the node can; the runtime finds the configuration then, and the kubelet says Ready.
func (a *Agent) serveCNI(ctx context.Context, o Options) {
	failed := func(err error) { a.log.Error("pods cannot be attached; trying again", "error", err) }
	l, err := listenForCNI(ctx, o.CNISocket, failed)
	if err != nil {
		return // the agent ends
	}
	go func() {
		if err := a.cni.Serve(ctx, l); err != nil {
			a.log.Error("the CNI server ended", "error", err)
		}
	}()
	if a.untilTrue(ctx, func() bool { return a.Ready() == nil }) != nil {
		return
	}
	failed = func(err error) { a.log.Error("the runtime does not find Egret; trying again", "error", err) }
	if writeConflist(ctx, o, failed) != nil {
		return
	}
	a.startup.noteStep(func(s *startup) { s.attaches = true })
	a.log.Info("pods can be attached", "subnets", a.Subnets())
}

// listenForCNI tries until it can: a disk may be full.
func listenForCNI(ctx context.Context, socket string, failed func(error)) (l net.Listener, err error) {
	err = retryUntilDone(ctx, failed, func(context.Context) (err error) {
		l, err = cniserver.Listen(socket)
		return err
	})
	return l, err
}

func writeConflist(ctx context.Context, o Options, failed func(error)) error {
	return retryUntilDone(ctx, failed, func(context.Context) error {
		return cni.WriteConflist(o.CNIConfDir, o.CNISocket)
	})
}
