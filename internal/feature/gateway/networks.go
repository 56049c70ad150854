package gateway

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Networks is what a node has once for all of its networks beside the default one. Their gateway routers lead to the
// default network's cluster router, and give packets an address of the masquerade range (feature zone): these rows say
// where packets from the range may go. A node without such a network has none of them.
type Networks struct{}

func (Networks) Name() string    { return "gateway-networks" }
func (Networks) Per() world.Kind { return world.KindHost }

// Compile adds rows for each family.
func (Networks) Compile(w *world.View, _ string, out *plan.Rows) {
	p := w.Part(ref.DefaultNetwork)
	if p == nil || !w.HasNetworks() {
		return
	}
	for _, f := range w.Config.Families() {
		r := masqueradeRange{Part: p, family: f, ip: world.Masquerades(f), match: f.Match(), w: w, out: out}
		r.addServices()
		r.isolateRange()
		if s, ok := f.Of(p.Subnets); ok {
			r.management = world.Nth(s, 2)
			r.leadToHost()
			r.leadOutside()
			r.addHostRows(world.Nth(s, 1))
			r.leadToServices()
		}
	}
}

// masqueradeRange is one family's range while it is compiled. management is the host's address on the node's switch.
type masqueradeRange struct {
	*world.Part
	family     world.Family
	ip         netip.Prefix
	match      string // "ip4"
	management netip.Addr
	w          *world.View
	out        *plan.Rows
}

// addServices adds the set of the open Services' cluster IPs.
func (r masqueradeRange) addServices() {
	set := plan.OpenServiceIPs(r.family.String())
	r.out.AddSet(set)
	for _, key := range world.OpenServiceKeys() {
		if s := r.w.Service(key); s != nil {
			for _, ip := range r.family.OfAddrs(s.ClusterIPs) {
				r.out.AddElem(set, ip.String())
			}
		}
	}
}

// isolateRange keeps packets of the range out of the default network, and the other way round, but for answers of
// Services. No policy names a port: a packet that the gateway router's load balancer gave a destination comes by
// another than a pod's.
func (r masqueradeRange) isolateRange() {
	services, machines := r.insideRanges()
	from, to := r.match+".src == ", r.match+".dst == "
	r.addPolicy("isolated", plan.PriorityIsolated, from+r.ip.String()+" && "+to+
		listOf(slices.Concat(machines, services, []string{r.ip.String()})), "drop", nil)
	r.addPolicy("isolated-from", plan.PriorityIsolated, from+listOf(machines)+" && "+to+r.ip.String(), "drop", nil)
}

// leadToHost gives the host packets for the open Services, and for itself: with its management port a new way through
// OVN begins. OVS' userspace datapath (3.5) drops a packet that is given to conntrack too often on one way.
func (r masqueradeRange) leadToHost() {
	from, host := r.match+".src == "+r.ip.String()+" && "+r.match+".dst == ", []string{r.management.String()}
	open := "$" + plan.SetName(plan.OpenServiceIPs(r.family.String()))
	r.addPolicy("services", plan.PriorityOpenServices, from+open, "reroute", host)
	// On its way to the management port the switch does not balance what comes from a router, nor may it refuse that.
	r.out.AddBalancedACL("networks/services/"+r.family.String(), plan.Switch(plan.DefaultNames().NodeSwitch(r.w.Self)),
		plan.PriorityUnserved+1, from+open, "allow")
	if own := textsOf(r.family.OfAddrs(r.Host.Addrs)); len(own) > 0 {
		r.addPolicy("own-node", plan.PriorityNetworkOwnNode, from+listOf(own), "reroute", host)
	}
}

func (r masqueradeRange) addPolicy(id string, priority int, match, action string, nexthops []string) {
	r.out.AddPolicy(plan.DefaultNames(), "networks/"+id+"/"+r.family.String(), priority, match, action, nexthops, nil)
}

// insideRanges are the ranges inside the default network: of cluster IPs, and of all that sends packets.
func (r masqueradeRange) insideRanges() (services, machines []string) {
	for _, s := range r.w.Config.OwnSubnets() {
		switch {
		case world.FamilyOf(s.CIDR.Addr()) != r.family:
		case slices.Contains(r.w.Config.ServiceSubnets, s.CIDR):
			services = append(services, s.CIDR.String())
		default:
			machines = append(machines, s.CIDR.String())
		}
	}
	return services, machines
}

// leadOutside has packets leave as this node's own pods' do: by the gateway router with the node's address, or in
// local gateway mode by the host.
func (r masqueradeRange) leadOutside() {
	names := plan.DefaultNames()
	gateway, cluster := names.GatewayRouter(r.w.Self), names.ClusterRouter()
	by := r.JoinAddr(r.Node.ID, r.family).Addr()
	if r.w.Config.GatewayMode == world.LocalGateway {
		by = r.management
	}
	r.out.AddRoute(cluster, "src-ip", r.ip.String(), by.String(), "")
	r.out.AddRoute(gateway, "dst-ip", r.ip.String(), r.JoinAddr(1, r.family).Addr().String(), "")
	if primary, ok := r.family.Of(r.Host.Primary); ok {
		nodeIP(names, r.w.Self, r.ip, primary.Addr(), r.out)
	}
	for _, k := range untranslatedFlows(r.w.Config.Bridge, []netip.Prefix{r.ip}, r.w.Config.UserspaceOVS) {
		plan.Add(&r.out.Flows, k, "drop")
	}
}

// addHostRows have the host answer by its management port, and translate what it sends on.
func (r masqueradeRange) addHostRows(router netip.Addr) {
	dev := plan.DefaultNames().ManagementPort()
	plan.Add(&r.out.Routes, plan.RouteKey{Table: plan.MainTable, Dst: r.ip}, plan.Route{Dev: dev,
		Via: router, Src: r.management, MTU: r.w.Config.PodMTU(r.Host)})
	noConnection(r.out.AddChain(plan.ChainForward), dev, r.ip, r.out)
	addMasquerade(r.out.AddChain(plan.ChainPostrouting), dev, r.ip, r.ip, r.out)
}

// leadToServices lets the host send to cluster IPs of Services of networks, and has answers come back to it, which
// translates them. Pods of the default network do not reach these cluster IPs, nor do they send with one as source.
// Processes of the host that send to a cluster IP itself have the management port's address.
func (r masqueradeRange) leadToServices() {
	set, names := plan.NetworkServices(r.family.String()), plan.DefaultNames()
	r.out.AddSet(set)
	r.out.AddBalancedACL("networks/from-outside/"+r.family.String(), plan.Switch(names.NodeSwitch(r.w.Self)),
		plan.PriorityUnserved+1, fmt.Sprintf("inport == %q && %[2]s.src != %[3]s && %[2]s.dst == %[4]s",
			names.HostPort(r.w.Self), r.match, r.management, plan.InSet(set)), "allow")
	services, _ := r.insideRanges()
	for _, s := range services {
		r.out.AddRoute(names.ClusterRouter(), "src-ip", s, r.management.String(), "")
	}
}

func textsOf(ips []netip.Addr) []string {
	var out []string
	for _, ip := range ips {
		out = append(out, ip.String())
	}
	slices.Sort(out)
	return out
}

// listOf is a set of constants in a match.
func listOf(texts []string) string { return fmt.Sprintf("{%s}", strings.Join(texts, ", ")) }
