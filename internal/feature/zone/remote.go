package zone

import (
	"net/netip"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Remote is the way to every other node's zone.
type Remote struct{}

func (Remote) Name() string    { return "zone-remote" }
func (Remote) Per() world.Kind { return world.KindNode }

// Compile waits until the other node's agent has published its chassis and its tunnel endpoint.
func (Remote) Compile(w *world.View, key string, out *plan.Rows) {
	n := w.Node(key)
	if _, _, ok := w.Zone(); !ok || n == nil || key == w.Self || n.ID == 0 || n.ChassisID == "" || len(n.Primary) == 0 {
		return
	}
	addRemoteChassis(w.Config, n, out)
	for _, network := range w.Networks() {
		if z, ok := partOf(w, network, out); ok {
			z.addRemoteNode(n)
		}
	}
}

// addRemoteNode is the way to another node's part of the network, which has none where it has no subnet.
func (z ownPart) addRemoteNode(n *world.Node) {
	subnets := n.In(z.Name).Subnets
	if len(subnets) == 0 && z.Name != ref.DefaultNetwork {
		return
	}
	port := z.names.TransitToRouter(n.Name)
	z.out.AddNB(plan.RowID{Table: "Logical_Switch_Port", Name: port}, plan.Switch(z.names.TransitSwitch()), plan.Cols{
		"name": port, "type": "remote", "addresses": []string{addressColumn(z.TransitMAC(n.ID),
			z.transitAddresses(n.ID))},
		"options": map[string]string{"requested-tnl-key": plan.Itoa(n.ID), "requested-chassis": n.ChassisID},
	})
	if z.w.Hosts(n.Name) {
		z.bindNextHops(z.names.RouterToTransit(z.w.Self), n.ID, z.w.Config.SlotTransit, z.TransitMAC(n.ID))
	}
	for _, s := range subnets {
		via := z.TransitAddr(n.ID, world.FamilyOf(s.Addr())).Addr().String()
		z.out.AddRoute(z.names.ClusterRouter(), "dst-ip", s.String(), via, "")
	}
	for _, f := range z.Families() {
		gateway := world.Single(z.JoinAddr(n.ID, f).Addr())
		via := z.TransitAddr(n.ID, f).Addr().String()
		z.out.AddRoute(z.names.ClusterRouter(), "dst-ip", gateway.String(), via, "")
	}
}

// addRemoteChassis is the other node's tunnel endpoint, as the local Southbound must know it: ovn-controller makes a
// tunnel to a chassis that is marked remote when ovn-is-interconn is set.
func addRemoteChassis(c *world.Config, n *world.Node, out *plan.Rows) {
	encap := plan.RowID{Table: "Encap", Name: n.ChassisID}
	id := plan.RowID{Table: "Chassis", Name: n.ChassisID}
	plan.Add(&out.SB, id, plan.Row{Cols: plan.Cols{
		"name": n.ChassisID, "hostname": n.Name, "other_config": map[string]string{"is-remote": "true"},
	}})
	plan.Add(&out.SB, encap, plan.Row{Parent: id, Cols: plan.Cols{
		"type": "geneve", "ip": tunnelEndpoint(n.Primary).String(), "chassis_name": n.ChassisID,
		"options": tunnelOptions(c),
	}})
}

// tunnelOptions are OVS' of a tunnel. It has Geneve's own port without a word.
func tunnelOptions(c *world.Config) map[string]string {
	o := map[string]string{"csum": "true"}
	if c.EncapPort != world.GenevePort {
		o["dst_port"] = plan.Itoa(c.EncapPort)
	}
	return o
}

// tunnelEndpoint is the first primary address: IPv4 where there is one.
func tunnelEndpoint(primary []netip.Prefix) netip.Addr { return primary[0].Addr() }
