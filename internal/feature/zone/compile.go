// Package zone compiles the logical network under everything else: this node's OVN zone and its way to the others.
//
// In: this node's id, subnets and chassis, and the other nodes'. Out: Northbound routers, switches and routes with
// OVN-Kubernetes' names, and the remote chassis in the Southbound. README.md draws it.
package zone

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Own is the zone of this very node.
type Own struct{}

func (Own) Name() string    { return "zone" }
func (Own) Per() world.Kind { return world.KindHost }

// Compile waits for the node's id and for the host's uplink: without either there is nothing to connect.
func (Own) Compile(w *world.View, _ string, out *plan.Rows) {
	n, h, ok := w.Zone()
	if !ok {
		return
	}
	names := plan.DefaultNames()
	global(n, out)
	shared(names, out)
	nodeSwitch(names, n, out)
	join(names, w, n, out)
	gatewayRouter(names, w, n, h, out)
	transit(names, w, n, out)
	routes(names, w, n, out)
}

// RouterAddr and ManagementAddr are the first two addresses of a node's subnet, as in OVN-Kubernetes.
func RouterAddr(subnet netip.Prefix) netip.Addr     { return world.Nth(subnet, 1) }
func ManagementAddr(subnet netip.Prefix) netip.Addr { return world.Nth(subnet, 2) }

// global has ACLs drop what they match and nothing besides. By default a switch with any ACL drops what conntrack calls invalid, and OVS' userspace datapath
// (3.5) says that of a connection whose port was used for one that got no answer in the last half minute: after a failover a busy pod's connections would
// fail for as long.
func global(n *world.Node, out *plan.Rows) {
	out.AddNB(plan.RowID{Table: "NB_Global", Name: "."}, plan.RowID{}, plan.Cols{
		"name": n.Name, "options": map[string]string{"name": n.Name, "use_ct_inv_match": "false"},
	})
}

// shared is what all nodes' parts of a network have in common.
func shared(names plan.Names, out *plan.Rows) {
	out.AddNB(plan.Router(names.ClusterRouter()), plan.RowID{}, plan.Cols{"name": names.ClusterRouter()})
	for _, g := range []string{names.ServiceLBGroup(), names.GatewayLBGroup()} {
		out.AddNB(plan.Group(g), plan.RowID{}, plan.Cols{"name": g})
	}
}

func nodeSwitch(names plan.Names, n *world.Node, out *plan.Rows) {
	var routers, management []string
	for _, s := range n.Subnets {
		routers = append(routers, netip.PrefixFrom(RouterAddr(s), s.Bits()).String())
		management = append(management, ManagementAddr(s).String())
	}
	sw := names.NodeSwitch(n.Name)
	out.AddNB(plan.Switch(sw), plan.RowID{}, plan.Cols{
		"name": sw, "load_balancer_group": []plan.RowID{plan.Group(names.ServiceLBGroup())},
	})
	out.AddPeers(names.ClusterRouter(), names.RouterToNodeSwitch(n.Name), sw, names.NodeSwitchToRouter(n.Name),
		world.MAC(RouterAddr(n.Subnets[0])), routers, nil, nil)
	port := names.HostPort(n.Name)
	mac := world.MAC(ManagementAddr(n.Subnets[0]))
	out.AddNB(plan.RowID{Table: "Logical_Switch_Port", Name: port}, plan.Switch(sw), plan.Cols{
		"name": port, "addresses": []string{address(mac, management)},
	})
}

// address is a switch port's address column: the hardware address and the IP addresses behind it.
func address(mac string, ips []string) string {
	for _, ip := range ips {
		mac += " " + ip
	}
	return mac
}

func join(names plan.Names, w *world.View, n *world.Node, out *plan.Rows) {
	out.AddNB(plan.Switch(names.JoinSwitch()), plan.RowID{}, plan.Cols{"name": names.JoinSwitch()})
	out.AddPeers(names.ClusterRouter(), names.RouterToJoin(), names.JoinSwitch(), names.JoinToRouter(),
		joinMAC(w, 1), append(joins(w, 1), slots(w, 1, w.Config.SlotJoin)...), nil, nil)
	bind(w, names.RouterToJoin(), n.ID, w.Config.SlotJoin, joinMAC(w, n.ID), out)
}

func joinMAC(w *world.View, id int) string {
	return world.MAC(w.Config.Join(id, w.Config.Families()[0]).Addr())
}

func joins(w *world.View, id int) []string {
	var out []string
	for _, f := range w.Config.Families() {
		out = append(out, w.Config.Join(id, f).String())
	}
	return out
}

// gatewayRouter learns its neighbours from every request that it hears, also from those for an egress IP that another node has: when that comes here, the
// hosts that packets go to are known. Until OVN 25.03 has resolved one it drops all but four packets to it, and that takes a round through the Southbound.
// Its one neighbour on the join switch is known to northd: OVN-Kubernetes' option dynamic_neigh_routers, for join switches with a router of each node, would
// have the first replies to pods wait for it.
// What is too big for pods it answers with ICMP: the links outside carry more than pods' do, and where these end it would be lost in silence.
func gatewayRouter(names plan.Names, w *world.View, n *world.Node, h *world.Host, out *plan.Rows) {
	gr, ext := names.GatewayRouter(n.Name), names.ExternalSwitch(n.Name)
	out.AddNB(plan.Router(gr), plan.RowID{}, plan.Cols{"name": gr, "options": map[string]string{
		"chassis": n.Name, "lb_force_snat_ip": "router_ip", "always_learn_from_arp_request": "true",
	}, "load_balancer_group": []plan.RowID{plan.Group(names.GatewayLBGroup())}})
	out.AddPeers(gr, names.GatewayToJoin(n.Name), names.JoinSwitch(), names.JoinToGateway(n.Name), joinMAC(w, n.ID),
		joins(w, n.ID), map[string]string{"gateway_mtu": plan.Itoa(h.PodMTU())}, nil)
	out.AddNB(plan.Switch(ext), plan.RowID{}, plan.Cols{"name": ext})
	var networks []string
	for _, p := range h.Primary {
		networks = append(networks, p.String())
	}
	out.AddPeers(gr, names.GatewayToExternal(n.Name), ext, names.ExternalToGateway(n.Name), h.UplinkMAC, networks, nil,
		map[string]string{"nat-addresses": "router", "exclude-lb-vips-from-garp": "true"})
	localnet := names.Localnet(w.Config.Bridge, n.Name)
	out.AddNB(plan.RowID{Table: "Logical_Switch_Port", Name: localnet}, plan.Switch(ext), plan.Cols{
		"name": localnet, "type": "localnet", "addresses": []string{"unknown"},
		"options": map[string]string{"network_name": plan.PhysicalNetwork},
	})
	gatewayRoutes(names, w, h, out)
}

// gatewayRoutes lead back into the cluster, and out to the host's own gateways.
func gatewayRoutes(names plan.Names, w *world.View, h *world.Host, out *plan.Rows) {
	gr := names.GatewayRouter(w.Self)
	for _, f := range w.Config.Families() {
		for _, c := range w.Config.Cluster(f) {
			out.AddRoute(gr, "dst-ip", c.String(), w.Config.Join(1, f).Addr().String(), "")
		}
		for _, via := range f.OfAddrs(h.Gateways) {
			out.AddRoute(gr, "dst-ip", anywhere(f), via.String(), names.GatewayToExternal(w.Self))
		}
	}
}

func anywhere(f world.Family) string { return [...]string{"0.0.0.0/0", "::/0"}[f] }

func transit(names plan.Names, w *world.View, n *world.Node, out *plan.Rows) {
	out.AddNB(plan.Switch(names.TransitSwitch()), plan.RowID{}, plan.Cols{
		"name":         names.TransitSwitch(),
		"other_config": map[string]string{"requested-tnl-key": plan.Itoa(names.TransitKey())},
	})
	key := map[string]string{"requested-tnl-key": plan.Itoa(n.ID)}
	port, peer := names.RouterToTransit(n.Name), names.TransitToRouter(n.Name)
	out.AddPeers(names.ClusterRouter(), port, names.TransitSwitch(), peer,
		transitMAC(w, n.ID), append(transits(w, n.ID), slots(w, n.ID, w.Config.SlotTransit)...), key, key)
}

func transits(w *world.View, id int) []string {
	var out []string
	for _, f := range w.Config.Families() {
		out = append(out, w.Config.Transit(id, f).String())
	}
	return out
}

func transitMAC(w *world.View, id int) string {
	return world.MAC(w.Config.Transit(id, w.Config.Families()[0]).Addr())
}

// routes send what this node's pods say to the outside to the gateway router, or in local gateway mode to the host. The route
// for the whole cluster subnet is for packets of other nodes' pods that were steered here: OVN acts on a reroute policy only
// where a route matched first, and it is the way to the gateway router for those that are translated here.
func routes(names plan.Names, w *world.View, n *world.Node, out *plan.Rows) {
	for _, s := range n.Subnets {
		f := world.FamilyOf(s.Addr())
		gateway := w.Config.Join(n.ID, f).Addr()
		own := gateway
		if w.Config.GatewayMode == world.LocalGateway {
			own = ManagementAddr(s)
		}
		out.AddRoute(names.ClusterRouter(), "src-ip", s.String(), own.String(), "")
		for _, c := range w.Config.Cluster(f) {
			if !slices.Contains(n.Subnets, c) {
				out.AddRoute(names.ClusterRouter(), "src-ip", c.String(), gateway.String(), "")
			}
		}
	}
}
