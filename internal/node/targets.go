package node

import (
	"context"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"

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

// targets are the planes of a node, and what else is asked of them.
type targets struct {
	ovs      *ovs.DB
	flow     *flow.Plane
	nft      *nft.Plane
	nb       *ovn.Plane
	sb       *ovn.Plane
	link     *announce.Plane
	listener *listen.Link
	forward  *forward.Plane
	all      []plane.Plane
	// early are those that are grown before the cluster is known: ports, the host's rules, the bridge's flows, and the
	// removal of released addresses.
	early []plane.Plane
	// comparers say what targets lack.
	comparers []plane.Comparer
	// connections are signalled when connections are to be looked at again.
	connections []<-chan struct{}
	// disturbed tells those who follow the host's connections that somebody else has changed its rules.
	disturbed func()

	// addrs are the host's own addresses, as it was last read; nil until they are known.
	addrs atomic.Pointer[[]netip.Addr]

	vswitchd *pulse.Pulse
	pulses   []*pulse.Pulse // vswitchd's among them
}

// openTargets connects to every target. Their order is that in which a packet that leaves meets them, from the last to
// the first: ports and routes of the host, its rules, the bridge's flows, the other zones, the logical network.
func openTargets(ctx context.Context, o Options, log *slog.Logger) (*targets, error) {
	db, err := ovs.Connect(ctx, "unix:"+o.OVSRunDir+"/db.sock", log)
	if err != nil {
		return nil, err
	}
	routes, err := route.New(route.Options{FormerSysctls: o.FormerSysctls()})
	if err != nil {
		return nil, err
	}
	rules, err := nft.Open()
	if err != nil {
		return nil, err
	}
	t := &targets{
		ovs: db, nft: rules, flow: flow.New(ctx, "ovs-ofctl", o.OVSRunDir, bridgePorts{db, o.Node}, log),
		nb: ovn.NewNB(o.Northbound, ovn.Options{Log: log}), sb: ovn.NewSB(o.Southbound, ovn.Options{Log: log}),
		link: announce.New(ctx, announce.Links{}, log), forward: forward.New(forward.Commands{}),
		listener: listen.New(ctx, map[string]string{o.Config.Bridge: o.Config.UplinkInterface}, log),
	}
	openvswitch, north, south := t.watchDaemons(ctx, o)
	own, ofSwitch := func() map[string]conntrack.Own { return t.ownSources(o) }, conntrack.Switch{RunDir: o.OVSRunDir}
	inSwitch, balanced := conntrack.New(ctx, ofSwitch, db, own, log), conntrack.NewBalanced(ctx, ofSwitch, log)
	ofHost := func() map[string]conntrack.Own { return hostSources(o) }
	inKernel := conntrack.New(ctx, conntrack.Kernel{}, conntrack.Kernel{}, ofHost, log)
	datagrams := conntrack.NewDatagrams(ctx, conntrack.Kernel{}, log)
	t.disturbed, t.connections = inKernel.Disturbed, []<-chan struct{}{inSwitch.Again(), inKernel.Again()}
	t.comparers = []plane.Comparer{t.nft, t.vswitchd.Comparer(t.flow), north.Comparer(t.nb), south.Comparer(t.sb)}
	ports := plane.For(plan.InOVSIDs|plan.InPorts, openvswitch.On(ovs.NewPlane(db)), plane.After())
	t.early = []plane.Plane{ports, t.nft.EarlyPlane(), t.flow,
		plane.For(plan.InReleasedAddrs, routes.EarlyPlane(), plane.After())}
	t.all = []plane.Plane{
		// The first is shrunk last, after the rules: when those have gone, no packet makes an entry by them.
		plane.For(plan.InDatagrams, datagrams, plane.After(), plane.Unawaited),
		// The bridge's flows need the host's rules, which drop what the kernel sees of the uplink, too; why the others
		// wait for each other is in docs/architecture.md.
		ports,
		plane.For(plan.InAddrs|plan.InRoutes|plan.InRules|plan.InSysctls, routes, plane.After(),
			plane.Following(ports.Name())),
		plane.For(plan.InNFTChains|plan.InNFTRules|plan.InNFTSets|plan.InNFTElems, rules,
			plane.After(datagrams.Name()), plane.Following(routes.Name())),
		plane.For(plan.InAccepts, t.forward, plane.After(), plane.Unawaited),
		plane.For(plan.InFlows, t.vswitchd.On(t.flow), plane.After(ports.Name(), routes.Name(), rules.Name())),
		plane.For(plan.InSB, south.On(t.sb), plane.After()),
		plane.For(plan.InNB|plan.InSetElems, north.On(t.nb), plane.After(routes.Name(), rules.Name(),
			t.flow.Name(), t.sb.Name())),
		plane.For(conntrack.Tables, t.vswitchd.On(inSwitch.Early()), plane.After(t.nb.Name())),
		plane.For(plan.InAnnouncements, t.link, plane.After(t.nb.Name()), plane.Telling, plane.Unawaited),
		plane.For(conntrack.Tables, t.vswitchd.On(inSwitch), plane.After(), plane.Unawaited, plane.Ending),
		plane.For(conntrack.Tables, inKernel, plane.After(), plane.Unawaited, plane.Ending),
		plane.For(plan.InDatagrams, balanced, plane.After(), plane.Unawaited),
		plane.For(plan.InHealthChecks, health.New(ctx, health.Sockets{}),
			plane.After(), plane.Following(t.nb.Name()), plane.Telling, plane.Unawaited),
	}
	return t, nil
}

// watchDaemons begins to ask the daemons whether they live, and gives those of the databases.
func (t *targets) watchDaemons(ctx context.Context, o Options) (openvswitch, north, south *pulse.Pulse) {
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

// tellAddrs is told of the host's own addresses before the world is.
func (t *targets) tellAddrs(now []netip.Addr) { t.addrs.Store(&now) }

// ownSources are the addresses that pods without an egress IP leave with.
func (t *targets) ownSources(o Options) map[string]conntrack.Own {
	own := conntrack.Own{}
	if addrs := t.addrs.Load(); addrs != nil {
		own.Addrs = *addrs
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
	for _, f := range o.Config.Families() {
		own.Pods = append(own.Pods, world.Masquerades(f)) // pods of other networks, in local gateway mode
	}
	return map[string]conntrack.Own{plan.HostKernel: own}
}
