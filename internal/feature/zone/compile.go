// Package zone compiles the logical network under everything else: this node's OVN zone and its way to the others.
//
// In: this node's id, subnets and chassis, and the other nodes'. Out: Northbound routers, switches and routes with
// OVN-Kubernetes' names, and the remote chassis in the Southbound. README.md draws it.
package zone

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Own is the zone of this very node, one network after the other.
type Own struct{}

func (Own) Name() string    { return "zone" }
func (Own) Per() world.Kind { return world.KindNetwork }

// ownPart is this node's part of a network, while it is compiled.
type ownPart struct {
	*world.Part
	names plan.Names
	w     *world.View
	out   *plan.Rows
}

func partOf(w *world.View, network string, out *plan.Rows) (z ownPart, ok bool) {
	p := w.Part(network)
	if p == nil {
		return ownPart{}, false
	}
	return ownPart{p, plan.Names{Network: p.Name, ID: p.ID}, w, out}, true
}

// Compile waits for the node's id and for the host's uplink: without either there is nothing to connect.
func (Own) Compile(w *world.View, network string, out *plan.Rows) {
	z, ok := partOf(w, network, out)
	if !ok {
		return
	}
	if network == ref.DefaultNetwork {
		limitACLs(z.Node, out)
	}
	z.addCommonRows()
	z.nodeSwitch()
	z.addJoinSwitch()
	z.gatewayRouter()
	z.addTransitSwitch()
	z.addRoutes()
}

// RouterAddr and ManagementAddr are the first two addresses of a node's subnet, as in OVN-Kubernetes.
func RouterAddr(subnet netip.Prefix) netip.Addr     { return world.Nth(subnet, 1) }
func ManagementAddr(subnet netip.Prefix) netip.Addr { return world.Nth(subnet, 2) }

// limitACLs has ACLs drop what they match and nothing besides. By default a switch with any ACL drops what conntrack
// calls invalid, and OVS' userspace datapath (3.5) says that of a connection whose port was used for one that got no
// answer in the last half minute: after a failover a busy pod's connections would fail for as long.
func limitACLs(n *world.Node, out *plan.Rows) {
	out.AddNB(plan.RowID{Table: "NB_Global", Name: "."}, plan.RowID{}, plan.Cols{
		"name": n.Name, "options": map[string]string{"name": n.Name, "use_ct_inv_match": "false"},
	})
}

// addCommonRows is what all nodes' parts of a network have in common.
func (z ownPart) addCommonRows() {
	z.out.AddNB(plan.Router(z.names.ClusterRouter()), plan.RowID{}, plan.Cols{"name": z.names.ClusterRouter()})
	for _, g := range []string{z.names.ServiceLBGroup(), z.names.GatewayLBGroup()} {
		z.out.AddNB(plan.Group(g), plan.RowID{}, plan.Cols{"name": g})
	}
}

func (z ownPart) nodeSwitch() {
	var routers, management []string
	for _, s := range z.Subnets {
		routers = append(routers, netip.PrefixFrom(RouterAddr(s), s.Bits()).String())
		management = append(management, ManagementAddr(s).String())
	}
	sw := z.names.NodeSwitch(z.Node.Name)
	z.out.AddNB(plan.Switch(sw), plan.RowID{}, plan.Cols{
		"name": sw, "load_balancer_group": []plan.RowID{plan.Group(z.names.ServiceLBGroup())},
		"copp": z.addMeter("egret-rejects", rejectsPerSecond, rejectsAtOnce, "reject"),
	})
	z.rejectUnserved(plan.Switch(sw))
	port, peer := z.names.RouterToNodeSwitch(z.Node.Name), z.names.NodeSwitchToRouter(z.Node.Name)
	z.out.AddPeers(z.names.ClusterRouter(), port, sw, peer,
		world.MAC(RouterAddr(z.Subnets[0])), routers, nil, nil)
	if z.Name != ref.DefaultNetwork {
		return
	}
	port = z.names.HostPort(z.Node.Name)
	mac := world.MAC(ManagementAddr(z.Subnets[0]))
	z.out.AddNB(plan.RowID{Table: "Logical_Switch_Port", Name: port}, plan.Switch(sw), plan.Cols{
		"name": port, "addresses": []string{addressColumn(mac, management)},
	})
}

// addressColumn is a switch port's address column: the hardware address and the IP addresses behind it.
func addressColumn(mac string, ips []string) string {
	for _, ip := range ips {
		mac += " " + ip
	}
	return mac
}

func (z ownPart) addJoinSwitch() {
	z.out.AddNB(plan.Switch(z.names.JoinSwitch()), plan.RowID{}, plan.Cols{"name": z.names.JoinSwitch()})
	z.out.AddPeers(z.names.ClusterRouter(), z.names.RouterToJoin(), z.names.JoinSwitch(), z.names.JoinToRouter(),
		z.JoinMAC(1), append(z.joinAddresses(1), z.slotAddresses(1, z.w.Config.SlotJoin)...), nil, nil)
	z.bindNextHops(z.names.RouterToJoin(), z.Node.ID, z.w.Config.SlotJoin, z.JoinMAC(z.Node.ID))
}

func (z ownPart) joinAddresses(id int) []string {
	var out []string
	for _, f := range z.Families() {
		out = append(out, z.JoinAddr(id, f).String())
	}
	return out
}

// gatewayRouter has one neighbour on the join switch, which is known to northd: OVN-Kubernetes' option
// dynamic_neigh_routers, for join switches with a router of each node, would have the first replies to pods wait for
// it. It answers packets that are too big for pods with ICMP: the links outside carry more than pods' do, and at the
// pods' links such packets would be lost in silence.
func (z ownPart) gatewayRouter() {
	gr, ext := z.names.GatewayRouter(z.Node.Name), z.names.ExternalSwitch(z.Node.Name)
	cols := plan.Cols{"name": gr, "options": map[string]string{
		"chassis": z.Node.Name, "lb_force_snat_ip": "router_ip", "always_learn_from_arp_request": "false",
	}, "load_balancer_group": []plan.RowID{plan.Group(z.names.GatewayLBGroup())}}
	if z.Name == ref.DefaultNetwork {
		z.learnNeighbours(cols)
	}
	z.out.AddNB(plan.Router(gr), plan.RowID{}, cols)
	z.out.AddPeers(gr, z.names.GatewayToJoin(z.Node.Name), z.names.JoinSwitch(), z.names.JoinToGateway(z.Node.Name),
		z.JoinMAC(z.Node.ID), z.joinAddresses(z.Node.ID),
		map[string]string{"gateway_mtu": plan.Itoa(z.w.Config.PodMTU(z.Host))}, nil)
	z.out.AddNB(plan.Switch(ext), plan.RowID{}, plan.Cols{"name": ext})
	for _, f := range z.Families() {
		for _, c := range z.Cluster(f) {
			z.out.AddRoute(gr, "dst-ip", c.String(), z.JoinAddr(1, f).Addr().String(), "")
		}
	}
	if z.Name == ref.DefaultNetwork {
		z.linkToBridge()
	} else {
		z.linkToDefaultNetwork()
	}
	z.snatUnanswered()
}

// linkToBridge is the outer side of the default network's gateway router.
func (z ownPart) linkToBridge() {
	gr, ext := z.names.GatewayRouter(z.Node.Name), z.names.ExternalSwitch(z.Node.Name)
	var networks []string
	for _, p := range z.Host.Primary {
		networks = append(networks, p.String())
	}
	z.out.AddPeers(gr, z.names.GatewayToExternal(z.Node.Name), ext, z.names.ExternalToGateway(z.Node.Name),
		z.Host.UplinkMAC, networks, nil, z.announcedOptions())
	localnet := z.names.Localnet(z.w.Config.Bridge, z.Node.Name)
	z.out.AddNB(plan.RowID{Table: "Logical_Switch_Port", Name: localnet}, plan.Switch(ext), plan.Cols{
		"name": localnet, "type": "localnet", "addresses": []string{"unknown"},
		"options": map[string]string{"network_name": plan.PhysicalNetwork},
	})
	for _, f := range z.Families() {
		for _, via := range f.OfAddrs(z.Host.Gateways) {
			z.out.AddRoute(gr, "dst-ip", defaultRoute(f), via.String(), z.names.GatewayToExternal(z.Node.Name))
		}
	}
}

// linkToDefaultNetwork is that of the gateway router of a network beside it. Both ends are /32, which OVN takes where
// the route names its port, and each knows the other's hardware address without asking. So a network has nothing on
// the bridge and nothing in the host's kernel; feature gateway has the rows that all networks have in common. The
// manual asks for a switch between a gateway router that translates and a distributed one.
func (z ownPart) linkToDefaultNetwork() {
	self, ext, cluster := z.Node.Name, z.names.ExternalSwitch(z.Node.Name), plan.DefaultNames().ClusterRouter()
	gr, port := z.names.GatewayRouter(self), z.names.GatewayToExternal(self)
	var inner, outer []netip.Addr
	for _, f := range z.Families() {
		a, _ := z.Masquerade(f)
		b := z.MasqueradeRouter(f)
		inner, outer = append(inner, a), append(outer, b)
		z.out.AddRoute(gr, "dst-ip", defaultRoute(f), b.String(), port)
		z.out.AddRoute(cluster, "dst-ip", world.Single(a).String(), a.String(), z.names.LinkToNetwork(self))
	}
	z.out.AddPeers(gr, port, ext, z.names.ExternalToGateway(self), world.MAC(inner[0]), singlesOf(inner), nil, nil)
	z.out.AddPeers(cluster, z.names.LinkToNetwork(self), ext, z.names.ExternalToCluster(self), world.MAC(outer[0]),
		singlesOf(outer), nil, nil)
}

// singlesOf are prefixes of one address each.
func singlesOf(ips []netip.Addr) []string {
	var out []string
	for _, ip := range ips {
		out = append(out, world.Single(ip).String())
	}
	return out
}

// announcedOptions is what ovn-controller tells the uplink that it has: the node's own IPv4 address. OVN-Kubernetes'
// value "router" stands for all addresses that rows of NAT translate to. Those of the join switch are nobody's
// business outside, and an egress IP is announced by internal/plane/announce, and only while this node answers for it.
func (z ownPart) announcedOptions() map[string]string {
	primary, ok := world.V4.Of(z.Host.Primary)
	if !ok {
		return nil
	}
	return map[string]string{"nat-addresses": z.Host.UplinkMAC + " " + primary.Addr().String()}
}

func defaultRoute(f world.Family) string { return [...]string{"0.0.0.0/0", "::/0"}[f] }

func (z ownPart) addTransitSwitch() {
	z.out.AddNB(plan.Switch(z.names.TransitSwitch()), plan.RowID{}, plan.Cols{
		"name":         z.names.TransitSwitch(),
		"other_config": map[string]string{"requested-tnl-key": plan.Itoa(z.names.TransitKey())},
	})
	key := map[string]string{"requested-tnl-key": plan.Itoa(z.Node.ID)}
	port, peer := z.names.RouterToTransit(z.Node.Name), z.names.TransitToRouter(z.Node.Name)
	z.out.AddPeers(z.names.ClusterRouter(), port, z.names.TransitSwitch(), peer,
		z.TransitMAC(z.Node.ID), append(z.transitAddresses(z.Node.ID),
			z.slotAddresses(z.Node.ID, z.w.Config.SlotTransit)...), key, key)
}

func (z ownPart) transitAddresses(id int) []string {
	var out []string
	for _, f := range z.Families() {
		out = append(out, z.TransitAddr(id, f).String())
	}
	return out
}

// addRoutes send what this node's pods say to the outside to the gateway router, or in local gateway mode to the host:
// it has a port into the default network alone, and pods of others leave as in shared gateway mode. The route for the
// whole cluster subnet is for packets of other nodes' pods that were steered here: OVN acts on a reroute policy only
// where a route matched first, and it is the way to the gateway router for those that are translated here.
func (z ownPart) addRoutes() {
	for _, s := range z.Subnets {
		f := world.FamilyOf(s.Addr())
		gateway := z.JoinAddr(z.Node.ID, f).Addr()
		own := gateway
		if z.w.Config.GatewayMode == world.LocalGateway && z.Name == ref.DefaultNetwork {
			own = ManagementAddr(s)
		}
		z.out.AddRoute(z.names.ClusterRouter(), "src-ip", s.String(), own.String(), "")
		for _, c := range z.Cluster(f) {
			if !slices.Contains(z.Subnets, c) {
				z.out.AddRoute(z.names.ClusterRouter(), "src-ip", c.String(), gateway.String(), "")
			}
		}
	}
}
