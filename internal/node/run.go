package node

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/metrics"
	"github.com/egret-net/egret/internal/node/cniserver"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/route"
	"github.com/egret-net/egret/internal/world"
)

// Options are an agent's settings; paths are OVS' and OVN's usual ones in a node's root.
type Options struct {
	Node, Kubeconfig, BootID, Version string
	Config                            world.Config
	OVSRunDir                         string // /run/openvswitch
	Northbound, Southbound            string // unix:/run/ovn/ovnnb_db.sock and ovnsb_db.sock
	CNISocket                         string // /run/egret/cni.sock
	CNIConfDir                        string // /etc/cni/net.d
	AgentSocket                       string // /run/egret/agent.sock: egret-node plan and trace ask there
	BootMarker                        string // /run/egret/booted: a file that a boot removes
	HostRoot                          string // /: where the host's /etc and /usr are
	Health                            Health
	Lease                             time.Duration // for how long a renewal of the agent's Lease lasts; 0: it has none
	Metrics                           metrics.Options
	Healthz                           string // host:port of /healthz alone; empty: nowhere
}

// Run is the agent, until ctx ends. Everything that it has set up stays: an agent's restart must not concern others.
func Run(ctx context.Context, o Options, log *slog.Logger) error {
	t, err := openTargets(ctx, o, log)
	if err != nil {
		return err
	}
	filter := readFilter(ctx, t.nft, &o.Config, log)
	b := boot{
		marker: o.BootMarker, log: log, pause: time.Second,
		bringUp: func(ctx context.Context, closed bool) error { return bringUp(ctx, o, t, closed) },
		empty:   func(ctx context.Context) error { return emptyNetwork(ctx, o, t, log) },
		tell:    func(ctx context.Context, reason, text string) error { return tellOfBoot(ctx, o, reason, text) },
	}
	if err := b.runOnce(ctx); err != nil {
		return err
	}
	a := newAgent(o.Node, &o.Config, all.ServedKinds(), log)
	if err := a.connectTargets(o, t); err != nil {
		return err
	}
	if err := a.adoptFormer(ctx, filter); err != nil {
		return err
	}
	a.adoptHeld(ctx, t.nb)
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
	go a.serveMetrics(ctx, o, t)
	a.loop.Run(ctx)
	return nil
}

// connectTargets gives the agent its targets and its way to the API server.
func (a *Agent) connectTargets(o Options, t *targets) error {
	contact, clients, err := connectAPI(o)
	if err != nil {
		return err
	}
	a.source = kube.NewSource(clients, a.log, kube.FollowedBy(a.self, a.kinds.AllResources()...)...)
	a.api = &API{Node: o.Node, BootID: o.BootID, Version: o.Version, Clients: clients, Observe: a.source.Observe,
		Outdated: a.source.Outdated}
	a.reads, a.applied = newReads(a.api, a.kinds.AllReads()), a.source.Applied
	a.reports = newMailbox("what this node holds", Report.Equal, a.api.Report, a.reportOverwritten, a.log)
	a.annotations = newMailbox("this node's addresses", maps.Equal[map[string]string], a.api.AnnotateNode,
		a.annotationsOverwritten, a.log)
	h := a.holding
	h.watch, h.announce, h.probe = t.listener.Watch, t.link.Defend, t.link.Probe
	h.silence, h.ask = contact.Silence, a.api.EgressIP
	h.renew = func(ctx context.Context) error { return t.vswitchd.Do(ctx, t.flow.Renew) }
	a.clearing.answersAt.Store(uint32(o.Config.AgentPort)) // the first report says so: without it nobody asks
	a.clearing.ask, a.clearing.pastLists = a.askAgent, a.source.SeenPods
	a.ovs, a.setPaused, a.confirmed, a.pulses = t.ovs, t.ovs.SetEgressPaused, t.nb.Confirmed, t.pulses
	a.loop.Planes, a.loop.Early = plane.Timed(t.all, a.metrics.countStep), t.early
	a.comparers = t.comparers
	a.host.Root, a.host.Know = o.HostRoot, t.tellAddrs
	a.host.Tell, a.host.FollowUplink = t.link.Tell, t.ovs.FollowUplink
	a.cni = cniserver.New(cniserver.FromOVS(t.ovs), a, a.log)
	a.cni.Answered = a.metrics.countCall
	return nil
}
