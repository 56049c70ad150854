package zone

import (
	"net/netip"

	"github.com/egret-net/egret/internal/plan"
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
	chassis(n, out)
	names := plan.DefaultNames()
	port := names.TransitToRouter(n.Name)
	out.AddNB(plan.RowID{Table: "Logical_Switch_Port", Name: port}, plan.Switch(names.TransitSwitch()), plan.Cols{
		"name": port, "type": "remote", "addresses": []string{address(transitMAC(w, n.ID), transits(w, n.ID))},
		"options": map[string]string{"requested-tnl-key": plan.Itoa(n.ID), "requested-chassis": n.ChassisID},
	})
	if w.Hosts(key) {
		bind(w, "rtots-"+w.Self, n.ID, w.Config.SlotTransit, transitMAC(w, n.ID), out)
	}
	for _, s := range n.Subnets {
		via := w.Config.Transit(n.ID, world.FamilyOf(s.Addr())).Addr().String()
		out.AddRoute(names.ClusterRouter(), "dst-ip", s.String(), via, "")
	}
	for _, f := range w.Config.Families() {
		gateway := world.Single(w.Config.Join(n.ID, f).Addr())
		via := w.Config.Transit(n.ID, f).Addr().String()
		out.AddRoute(names.ClusterRouter(), "dst-ip", gateway.String(), via, "")
	}
}

// chassis is the other node's tunnel endpoint, as the local Southbound must know it: ovn-controller makes a tunnel to a chassis
// that is marked remote when ovn-is-interconn is set.
func chassis(n *world.Node, out *plan.Rows) {
	encap := plan.RowID{Table: "Encap", Name: n.ChassisID}
	id := plan.RowID{Table: "Chassis", Name: n.ChassisID}
	plan.Claim(&out.SB, id, plan.Row{Cols: plan.Cols{
		"name": n.ChassisID, "hostname": n.Name, "other_config": map[string]string{"is-remote": "true"},
	}})
	plan.Claim(&out.SB, encap, plan.Row{Parent: id, Cols: plan.Cols{
		"type": "geneve", "ip": tunnelEndpoint(n.Primary).String(), "chassis_name": n.ChassisID, "options": map[string]string{"csum": "true"},
	}})
}

// tunnelEndpoint is the first primary address: IPv4 where there is one.
func tunnelEndpoint(primary []netip.Prefix) netip.Addr { return primary[0].Addr() }
