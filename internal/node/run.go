package node

import (
	"context"
	"log/slog"
	"time"

	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/node/cniserver"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/conntrack"
	"github.com/egret-net/egret/internal/plane/route"
)

// Run is the agent, until ctx ends. Everything that it has set up stays: an agent's restart must not concern others.
func Run(ctx context.Context, o Options, log *slog.Logger) error {
	a := newAgent(o.Node, &o.Config, all.ServedKinds(), log)
	a.startup.waitsFor = "Open vSwitch's database has not answered yet: is egret-ovs running on this node?"
	go a.serveMetrics(ctx, o)
	t, err := openTargets(ctx, o, log)
	if err != nil {
		return err
	}
	a.metrics.countBlocked(&o.Config, t.flow.Packets, log)
	a.metrics.countPorts(plan.DefaultNames().GatewayRouter(o.Node), t.ovs, conntrack.Switch{RunDir: o.OVSRunDir}, log)
	a.startup.noteStep(func(s *startup) { s.waitsFor, s.pulses = beforeLoop, t.pulses })
	filter := readFilter(ctx, t.nft, &o.Config, log)
	b := boot{
		marker: o.BootMarker, log: log, pause: time.Second,
		bringUp: func(ctx context.Context, closed bool) error { return bringUpHost(ctx, o, t, closed) },
		empty:   func(ctx context.Context) error { return emptyNetwork(ctx, o, t, log) },
		tell:    func(ctx context.Context, reason, text string) error { return tellOfBoot(ctx, o, reason, text) },
	}
	if err := b.runOnce(ctx); err != nil {
		return err
	}
	if err := a.connectTargets(o, t); err != nil {
		return err
	}
	if err := a.adoptFormer(ctx, filter); err != nil {
		return err
	}
	a.adoptHeld(ctx, t.nb, t.nft)
	a.clearing.readLed(ctx, t.nb)
	host, err := route.Watch(ctx)
	if err != nil {
		return err
	}
	a.followSources(ctx, o, t, host)
	go a.serveCNI(ctx, o)
	go a.serveQuestions(ctx, o.AgentSocket)
	go a.serveHealth(ctx, o.Health)
	go a.serveAgents(ctx, int(o.Config.AgentPort))
	go a.keepLease(ctx, o.Lease)
	a.startup.noteStep(func(s *startup) { s.waitsFor = "" })
	a.loop.RunRounds(ctx)
	return nil
}

// beforeLoop is what an agent does before it takes in the cluster.
const beforeLoop = "the gateway bridge is not up yet, or what a previous agent left has not been read: see the log"

// connectTargets gives the agent its targets and its way to the API server.
func (a *Agent) connectTargets(o Options, t *targets) error {
	contact, clients, err := connectAPI(o)
	if err != nil {
		return err
	}
	a.source = kube.NewSource(clients, a.log, kube.FollowedBy(a.self, a.kinds.AllResources()...)...)
	a.api = &API{Node: o.Node, BootID: o.BootID, Version: o.Version, Clients: clients, Observe: a.source.Observe,
		ReadNow: a.source.ReadNow, BeginRead: a.source.BeginRead}
	a.reads = newReads(a.api, a.kinds.AllReads(), a.caughtUp, a.loop)
	a.publisher = newPublisher(a.self, a.source, a.api.Report, a.api.AnnotateNode, a.log)
	h := a.holding
	h.watch, h.announce, h.probe = t.listener.Watch, t.link.Defend, t.link.Probe
	h.silence, h.ask = contact.Silence, a.api.EgressIP
	h.renew = func(ctx context.Context) error { return t.vswitchd.Do(ctx, t.flow.Renew) }
	a.clearing.ask, a.clearing.pastLists = a.askAgent, a.source.SeenPods
	a.ovs, a.setPaused, a.confirmed = t.ovs, t.ovs.SetEgressPaused, t.nb.Confirmed
	a.loop.Planes, a.loop.Early = plane.Timed(t.all, a.metrics.countStep), t.early
	a.inspector.comparers = t.comparers
	a.host.Root, a.host.Know = o.HostRoot, t.tellAddrs
	a.host.Tell, a.host.FollowUplink = t.link.Tell, t.ovs.FollowUplink
	a.cni = cniserver.New(cniserver.FromOVS(t.ovs), a, a.log)
	a.cni.Answered = a.metrics.countCall
	return nil
}
