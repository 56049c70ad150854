package node

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/egret-net/egret/internal/cni"
	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/metrics"
	"github.com/egret-net/egret/internal/node/cniserver"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/announce"
	"github.com/egret-net/egret/internal/plane/conntrack"
	"github.com/egret-net/egret/internal/plane/flow"
	"github.com/egret-net/egret/internal/plane/forward"
	"github.com/egret-net/egret/internal/plane/health"
	"github.com/egret-net/egret/internal/plane/listen"
	"github.com/egret-net/egret/internal/plane/nft"
	"github.com/egret-net/egret/internal/plane/ovn"
	"github.com/egret-net/egret/internal/plane/ovs"
	"github.com/egret-net/egret/internal/plane/pulse"
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
	MetricsAddress                    string // host:port of /metrics and /healthz; empty: neither is served
}

// targets are the planes of a node, and what else is asked of them.
type targets struct {
	ovs      *ovs.DB
	flow     *flow.Plane
	nft      *nft.Plane
	nb       *ovn.Plane
	sb       *ovn.Plane
	link     *announce.Plane
	listener *listen.Link
	all      []plane.Plane
	// early are those that are grown before the cluster is known: ports, the host's rules, and the bridge's flows.
	early []plane.Plane
	// comparers say what targets lack.
	comparers []plane.Comparer
	// connections are signalled when connections are to be looked at again.
	connections []<-chan struct{}

	vswitchd *pulse.Pulse
	pulses   []*pulse.Pulse // vswitchd's among them
}

// Run is the agent, until ctx ends. What it has set up stays: an agent's restart is nobody's business but its own.
func Run(ctx context.Context, o Options, log *slog.Logger) error {
	t, err := open(ctx, o, log)
	if err != nil {
		return err
	}
	filter := readFilter(ctx, t.nft, &o.Config, log)
	b := boot{
		marker: o.BootMarker, log: log, pause: time.Second,
		bringUp: func(ctx context.Context, closed bool) error { return bringUp(ctx, o, t, closed) },
		empty:   func(ctx context.Context) error { return empty(ctx, o, t, log) },
		tell:    func(ctx context.Context, text string) error { return tellOfBoot(ctx, o, text) },
	}
	if err := b.run(ctx); err != nil {
		return err
	}
	a := newAgent(o.Node, &o.Config, log)
	a.hostRoot = o.HostRoot
	if err := a.connect(o, t); err != nil {
		return err
	}
	if err := a.adopt(ctx, filter); err != nil {
		return err
	}
	a.adoptHeld(ctx, t.nb)
	host, err := route.Watch(ctx)
	if err != nil {
		return err
	}
	a.follow(ctx, o, t, host)
	go a.serveCNI(ctx, o)
	go a.serveQuestions(ctx, o.AgentSocket)
	go a.serveHealth(ctx, o.Health)
	go a.serveMetrics(ctx, o, t)
	a.loop.Run(ctx)
	return nil
}

// open connects to every target. Their order is that in which a packet that leaves meets them, from the last to the
// first: ports and routes of the host, its rules, the bridge's flows, the other zones, the logical network.
func open(ctx context.Context, o Options, log *slog.Logger) (*targets, error) {
	db, err := ovs.Connect(ctx, "unix:"+o.OVSRunDir+"/db.sock", log)
	if err != nil {
		return nil, err
	}
	routes, err := route.New(route.Options{})
	if err != nil {
		return nil, err
	}
	rules, err := nft.Open()
	if err != nil {
		return nil, err
	}
	t := &targets{
		ovs: db, nft: rules, flow: flow.New("ovs-ofctl", o.OVSRunDir, bridgePorts{db, o.Node}, log),
		nb: ovn.NewNB(o.Northbound, ovn.Options{Log: log}), sb: ovn.NewSB(o.Southbound, ovn.Options{Log: log}),
		link: announce.New(ctx, announce.Links{}, log), listener: listen.New(ctx,
			map[string]string{o.Config.Bridge: o.Config.UplinkInterface}, log),
	}
	openvswitch, north, south := t.watch(ctx, o)
	own := func() map[string]conntrack.Own { return ownSources(ctx, o) }
	inSwitch := conntrack.New(conntrack.Switch{RunDir: o.OVSRunDir}, db, own, log)
	inKernel := conntrack.New(conntrack.Kernel{}, conntrack.Kernel{},
		func() map[string]conntrack.Own { return hostSources(o) }, log)
	t.connections = []<-chan struct{}{inSwitch.Again(), inKernel.Again()}
	t.comparers = []plane.Comparer{t.nft, t.vswitchd.Comparer(t.flow), north.Comparer(t.nb), south.Comparer(t.sb)}
	ports := plane.For(plan.InOVSIDs|plan.InPorts, openvswitch.On(ovs.NewPlane(db)), plane.After())
	t.early = []plane.Plane{ports, t.nft, t.flow}
	balanced := conntrack.NewBalanced(ctx, conntrack.Switch{RunDir: o.OVSRunDir}, log)
	datagrams := conntrack.NewDatagrams(conntrack.Kernel{}, log)
	t.all = []plane.Plane{
		// The first is shrunk last, after the rules: when those have gone, no packet makes an entry by them.
		plane.For(plan.InDatagrams, datagrams, plane.After(), plane.Unawaited),
		// An accept that is missing leads no packet anywhere: who comes later need not wait for it. The bridge's flows
		// name ports, and need the host's rules, which drop what the kernel sees of the uplink, too; the logical
		// network, which steers, needs all that packets meet behind it.
		ports,
		plane.For(plan.InAddrs|plan.InRoutes|plan.InRules|plan.InSysctls, routes, plane.After()),
		plane.For(plan.InNFTChains|plan.InNFTRules|plan.InNFTSets|plan.InNFTElems, rules,
			plane.After(datagrams.Name())),
		plane.For(plan.InAccepts, forward.New(forward.Commands{}), plane.After(), plane.Unawaited),
		plane.For(plan.InFlows, t.vswitchd.On(t.flow.ForPackets()), plane.After("ovs", routes.Name(), rules.Name())),
		plane.For(plan.InSB, south.On(t.sb), plane.After()),
		plane.For(plan.InNB|plan.InSetElems, north.On(t.nb), plane.After(routes.Name(), rules.Name(), "flow", "sb")),
		plane.For(conntrack.Tables, t.vswitchd.On(inSwitch.Early()), plane.After(t.nb.Name())),
		plane.For(plan.InFlows, t.vswitchd.On(t.flow.ForReplies()), plane.After(t.flow.Name(), t.nb.Name())),
		plane.For(plan.InAnnouncements, t.link, plane.After(t.nb.Name()), plane.Telling, plane.Unawaited),
		plane.For(conntrack.Tables, t.vswitchd.On(inSwitch), plane.After(), plane.Unawaited),
		plane.For(conntrack.Tables, inKernel, plane.After(), plane.Unawaited),
		plane.For(plan.InDatagrams, balanced, plane.After(), plane.Unawaited),
		plane.For(plan.InHealthChecks, health.New(ctx, health.Sockets{}),
			plane.After(), plane.Telling, plane.Unawaited),
	}
	return t, nil
}

// watch begins to ask the daemons whether they live, and gives those of the databases.
func (t *targets) watch(ctx context.Context, o Options) (openvswitch, north, south *pulse.Pulse) {
	openvswitch = pulse.Start(ctx, "ovsdb-server (Open_vSwitch)", pulse.Database("unix:"+o.OVSRunDir+"/db.sock"))
	north = pulse.Start(ctx, "ovsdb-server (OVN_Northbound)", pulse.Database(o.Northbound))
	south = pulse.Start(ctx, "ovsdb-server (OVN_Southbound)", pulse.Database(o.Southbound))
	t.vswitchd = pulse.Start(ctx, "ovs-vswitchd", pulse.Daemon(o.OVSRunDir, "ovs-vswitchd"))
	t.pulses = []*pulse.Pulse{openvswitch, north, south, t.vswitchd}
	for _, name := range []string{"ovn-northd", "ovn-controller"} {
		runDir := filepath.Dir(strings.TrimPrefix(o.Northbound, "unix:")) // all of OVN has one run directory
		t.pulses = append(t.pulses, pulse.Start(ctx, name, pulse.Daemon(runDir, name)))
	}
	return openvswitch, north, south
}

// ownSources are the addresses that pods without an egress IP leave with.
func ownSources(ctx context.Context, o Options) map[string]conntrack.Own {
	own := conntrack.Own{}
	if h, err := route.ReadHost(ctx); err == nil {
		if facts := hostFacts(h, &o.Config, nil); facts != nil {
			own.Addrs = append(own.Addrs, facts.Addrs...)
		}
	}
	for _, s := range o.Config.ClusterSubnets {
		own.Pods = append(own.Pods, s.CIDR)
	}
	return map[string]conntrack.Own{plan.DefaultNames().GatewayRouter(o.Node): own}
}

// hostSources say how to tell connections through the host's kernel that were given an egress IP: by their mark. Others
// are not ours to judge.
func hostSources(o Options) map[string]conntrack.Own {
	own := conntrack.Own{Mark: plan.MarkEgress, Mask: plan.MarkEgressMask}
	for _, s := range o.Config.ClusterSubnets {
		own.Pods = append(own.Pods, s.CIDR)
	}
	return map[string]conntrack.Own{plan.HostKernel: own}
}

// bringUp makes the gateway bridge of the uplink, with the flows that follow from this host's own facts: nothing in it
// needs the API server, which may be behind that very bridge. Closed, nothing passes that comes from OVN.
func bringUp(ctx context.Context, o Options, t *targets, closed bool) error {
	datapath := "system"
	if o.Config.UserspaceOVS {
		datapath = "netdev"
	}
	integration := ovs.Bridge{Name: plan.IntegrationBridge, DatapathType: datapath, FailMode: "secure"}
	if err := t.ovs.EnsureBridge(ctx, integration); err != nil {
		return err
	}
	if o.Config.ReachabilityTimeout > 0 {
		liveness := ovs.Bridge{Name: plan.LivenessBridge, DatapathType: datapath, FailMode: "secure"}
		if err := t.ovs.EnsureBridge(ctx, liveness); err != nil {
			return err
		}
	}
	uplink := ovs.Uplink{Bridge: o.Config.Bridge, Device: o.Config.UplinkInterface, DatapathType: datapath}
	return t.ovs.MoveUplink(ctx, uplink, func(ctx context.Context) error { return baseFlows(ctx, o, t, closed) })
}

func baseFlows(ctx context.Context, o Options, t *targets, closed bool) error {
	h, err := route.ReadHost(ctx)
	if err != nil {
		return err
	}
	facts := hostFacts(h, &o.Config, nil)
	if facts == nil {
		return fmt.Errorf("neither %s nor %s has an address: configure the uplink", o.Config.UplinkInterface,
			o.Config.Bridge)
	}
	w := world.New(o.Node, &o.Config)
	w.SetHost(facts)
	base := compile.Full(w, all.Features())
	if closed {
		shut(base)
		t.flow.Forget() // ovs-vswitchd may have started anew meanwhile
	}
	for _, p := range []plane.Plane{t.nft, t.flow} {
		if err := p.Grow(ctx, base); err != nil {
			return err
		}
	}
	return nil
}

// connectAPI asks the API server nothing yet.
func connectAPI(o Options) (*kube.Contact, *kube.Clients, error) {
	config, err := kube.Config(o.Kubeconfig, 200, "egret-node/"+o.Version)
	if err != nil {
		return nil, nil, err
	}
	contact := kube.NewContact(config)
	clients, err := kube.NewClients(config)
	return contact, clients, err
}

// tellOfBoot posts an Event before there is an agent: the host's network waits neither for the API server nor for a
// kubeconfig.
func tellOfBoot(ctx context.Context, o Options, text string) error {
	_, clients, err := connectAPI(o)
	if err != nil {
		return err
	}
	return postEvent(ctx, clients, o.Node, ofThisNode(o.Node, "PodsHaveNoNetwork", "Boot", text))
}

// connect gives the agent its targets and its way to the API server.
func (a *Agent) connect(o Options, t *targets) error {
	contact, clients, err := connectAPI(o)
	if err != nil {
		return err
	}
	a.source = kube.NewSource(clients, a.log, kube.Nodes(), kube.Namespaces(), kube.Pods(), kube.Services(),
		kube.EndpointSlices(), kube.EgressIPs(), kube.EgressIPTraffics(), kube.EgressServices(),
		kube.EgressNodes())
	a.api = &API{Node: o.Node, BootID: o.BootID, Version: o.Version, Clients: clients, Observe: a.source.Observe,
		Outdated: a.source.Outdated}
	a.reads, a.applied = newReads(a.api), a.source.Applied
	a.reports = newMailbox("what this node holds", Report.Equal, a.api.Report, a.log)
	a.annotations = newMailbox("this node's addresses", maps.Equal[map[string]string], a.api.AnnotateNode, a.log)
	h := a.holding
	h.watch, h.announce, h.probe = t.listener.Watch, t.link.Defend, t.link.Probe
	h.silence, h.ask = contact.Silence, a.api.EgressIP
	h.renew = func(ctx context.Context) error { return t.vswitchd.Do(ctx, t.flow.Renew) }
	a.ovs, a.confirmed, a.pulses = t.ovs, t.nb.Confirmed, t.pulses
	a.loop.Planes, a.loop.Early = plane.Timed(t.all, a.metrics.applied), t.early
	a.comparers = t.comparers
	a.cni = cniserver.New(cniserver.FromOVS(t.ovs), a, a.log)
	a.cni.Answered = a.metrics.answered
	return nil
}

// adopt takes in what a former process left: this host's facts, and the pods that are attached. After a boot their
// ports are in the database and their interfaces are not; those are swept.
func (a *Agent) adopt(ctx context.Context, filter formerFilter) error {
	if err := a.cni.Sweep(ctx); err != nil {
		a.log.Warn("could not sweep ports of pods that are gone", "error", err)
	}
	a.readHost(ctx, a.loop.Do)
	ports, err := cniserver.FromOVS(a.ovs).PodPorts(ctx)
	if err != nil {
		return fmt.Errorf("read the pods' ports: %w", err)
	}
	for _, p := range ports {
		at := filter.adopted(p)
		a.loop.Do(func(w *world.World) []world.Touch { return w.SetAttachment(at) })
	}
	return nil
}

// adoptHeld has the holder look after what a former process announced on the primary network, which OVN goes on
// answering for. What the host itself answers for on secondary links waits for the cluster.
func (a *Agent) adoptHeld(ctx context.Context, nb *ovn.Plane) {
	rows, err := nb.Ours(ctx, "NAT")
	if err != nil {
		a.log.Warn("could not read which egress IPs OVN answers for", "error", err)
		return
	}
	a.loop.Do(func(w *world.World) []world.Touch {
		if h := w.Host(); h != nil {
			a.holding.adopt(rows, a.config.Bridge, h.UplinkMAC)
		}
		return nil
	})
}

func (a *Agent) readHost(ctx context.Context, do func(Change)) {
	h, err := route.ReadHost(ctx)
	if err != nil {
		a.log.Warn("could not read this host's addresses", "error", err)
		return
	}
	if facts := hostFacts(h, a.config, route.TableNames(a.hostRoot)); facts != nil {
		do(func(w *world.World) []world.Touch { return w.SetHost(facts) })
	}
	if !slices.Equal(h.Ours, a.ours) { // by us, or by somebody who took of it
		a.ours = h.Ours
		a.loop.Wake()
	}
}

// followHost reads the host anew when the kernel, or a file with names of routing tables, tells of a change. Without
// such telling, names are read with the next change of the kernel.
func (a *Agent) followHost(ctx context.Context, host <-chan struct{}, do func(Change)) {
	names, err := route.WatchNames(ctx, a.hostRoot)
	if err != nil {
		a.log.Warn("changed names of routing tables may not be seen at once", "error", err)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-host:
			if !open {
				return
			}
		case _, open := <-names:
			if !open {
				return
			}
		}
		a.readHost(ctx, do)
	}
}

// follow feeds the loop.
func (a *Agent) follow(ctx context.Context, o Options, t *targets, host <-chan struct{}) {
	go a.source.Run(ctx)
	go a.changes(ctx)
	go a.reports.run(ctx)
	go a.annotations.run(ctx)
	go a.holding.run(ctx, t.listener.Claims())
	go a.followTunnels(ctx, t.ovs)
	restarts := ovs.VSwitchdRestarts(ctx, o.OVSRunDir, a.log)
	inTurn := func(c Change) { _ = a.loop.Turn(ctx, c) } // its only error is that the agent ends
	go a.followHost(ctx, host, inTurn)
	go each(ctx, restarts, a.loop.Reread)
	go each(ctx, t.nft.Watch(ctx), func() {
		a.log.Warn("somebody else changed our nftables tables; they are read anew")
		a.loop.Wake()
	})
	for _, changed := range []<-chan struct{}{t.ovs.Changed(), t.nb.Changed(), t.sb.Changed()} {
		go each(ctx, changed, a.loop.Wake)
	}
	for _, p := range t.pulses {
		go each(ctx, p.Changed(), a.loop.Wake)
	}
	go each(ctx, t.nb.LateConfirm(), a.loop.Confirmed)
	for _, again := range t.connections {
		go each(ctx, again, func() { a.loop.Look(plan.InSources) })
	}
}

func each(ctx context.Context, signal <-chan struct{}, f func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-signal:
			if !open {
				return
			}
			f()
		}
	}
}

// changes brings the cluster into the loop, and tells it when it is whole.
func (a *Agent) changes(ctx context.Context) {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for synced := look.C; ; {
		select {
		case <-ctx.Done():
			return
		case c := <-a.source.Changes():
			if a.loop.Offer(ctx, Change(c)) != nil {
				return
			}
		case <-synced:
			if a.source.Synced() {
				a.loop.Do(filterOrphans)
				a.loop.Synced()
				synced = nil
			}
		}
	}
}

// serveMetrics goes without when the address is taken: pods and egress IPs do not depend on it.
func (a *Agent) serveMetrics(ctx context.Context, o Options, t *targets) {
	a.metrics.countBlocked(&o.Config, t.flow.Packets, a.log)
	health := func() metrics.Health {
		short, cancel := context.WithTimeout(ctx, healthWait)
		defer cancel()
		alive := a.loop.Ask(short, func(*world.World) {}) == nil
		return metrics.Health{Alive: alive, Problems: a.silent()}
	}
	if err := metrics.Serve(ctx, o.MetricsAddress, a.metrics.Registry, health); err != nil {
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
