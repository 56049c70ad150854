package service

import (
	"net/netip"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// toOwnPods is the way from the host to where OVN balances to this node's pods only, and keeps the client's address:
// in by the management port, whose switch does it in local gateway mode; pods' answers come back by that port, as all
// that they send. In shared mode the gateway router does it, for there pods' answers go to it. It gives them LocalOnly
// as source again, by which the bridge knows that they are the host's, which translates them back and has the route to
// the client.
func toOwnPods(w *world.View, n *world.Node, f world.Family, router netip.Addr, out *plan.Rows) {
	at, names := w.Config.LocalOnly(f), plan.DefaultNames()
	key := plan.RouteKey{Table: plan.MainTable, Dst: world.Single(at)}
	plan.Add(&out.Routes, key, plan.Route{Dev: names.ManagementPort(), Via: router})
	if w.Config.GatewayMode == world.LocalGateway {
		return
	}
	gateway := w.Config.Join(n.ID, f).Addr().String()
	out.AddRoute(names.ClusterRouter(), "dst-ip", world.Single(at).String(), gateway, "")
	match := [...]string{"ip", "ipv6"}[f] + ",in_port=" + names.PatchPort() + "," +
		[...]string{"nw_src", "ipv6_src"}[f] + "=" + at.String()
	out.AddFlow(w.Config.Bridge, plan.HostAnswer, match, "mod_dl_dst:"+w.Host().UplinkMAC+",LOCAL")
	plan.Add(&out.Accepts, plan.Accept{V6: f == world.V6, Dev: w.Config.Bridge, Src: at}, plan.None{})
	if f == world.V4 {
		// Loose: what comes by the bridge with that source is on its way back by another link than it went in.
		plan.Add(&out.Sysctls, plan.Sysctl{Key: plan.LinkSetting(w.Config.Bridge, "rp_filter")}, "2")
	}
}
