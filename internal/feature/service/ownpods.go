package service

import (
	"net/netip"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// toOwnPods is the way from the host to where OVN balances to this node's pods only, and keeps the client's address:
// in by the management port, whose switch does it in local gateway mode; pods' answers come back by that port, as all
// that they send. In shared mode the gateway router does it, for there pods' answers go to it.
func toOwnPods(w *world.View, n *world.Node, f world.Family, router netip.Addr, out *plan.Rows) {
	at := w.Config.LocalOnly(f)
	key := plan.RouteKey{Table: plan.MainTable, Dst: world.Single(at)}
	plan.Add(&out.Routes, key, plan.Route{Dev: plan.DefaultNames().ManagementPort(), Via: router})
	onlyAnswers(f, at.String(), out)
	if w.Config.GatewayMode == world.SharedGateway && w.Host().UplinkMAC != "" {
		byGatewayRouter(w, n, f, at, out)
	}
}

// onlyAnswers drops and counts what has a source, an address or a range of them, that is for use inside, and is of no
// connection that the host has translated: it would leave with it.
func onlyAnswers(f world.Family, source string, out *plan.Rows) {
	c, ip := out.AddChain(plan.ChainForward), [...]string{"ip", "ip6"}[f]
	for name, state := range map[string]string{"": "ct direction original",
		"no connection ": "ct state { invalid, untracked }"} {
		plan.Add(&out.NFTRules, plan.NFTRule{Chain: c, Name: plan.ForwardUntranslated + name + source},
			ip+" saddr "+source+" "+state+" counter drop")
	}
}

// byGatewayRouter leads to the gateway router what the host sends. It discards packets that it does not balance (of a
// Service that is new, or gone). It gives pods' answers that address as source again, by which the bridge knows that
// they are the host's, which translates them back and has the route to the client.
func byGatewayRouter(w *world.View, n *world.Node, f world.Family, at netip.Addr, out *plan.Rows) {
	names, to := plan.DefaultNames(), world.Single(at).String()
	out.AddRoute(names.ClusterRouter(), "dst-ip", to, w.Config.Join(n.ID, f).Addr().String(), "")
	out.AddRoute(names.GatewayRouter(w.Self), "dst-ip", to, plan.Discard, "")
	match := [...]string{"ip", "ipv6"}[f] + ",in_port=" + plan.PatchPort + "," +
		[...]string{"nw_src", "ipv6_src"}[f] + "=" + at.String()
	out.AddFlow(w.Config.Bridge, plan.HostAnswer, match, "set_field:"+w.Host().UplinkMAC+"->eth_dst,LOCAL")
	plan.Add(&out.Accepts, plan.Accept{V6: f == world.V6, Dev: w.Config.Bridge, Src: at}, plan.None{})
	if f == world.V4 {
		// Loose: a packet that comes by the bridge with that source is on its way back by another link than it went in.
		plan.Add(&out.Sysctls, plan.Sysctl{Key: plan.LinkSetting(w.Config.Bridge, "rp_filter")}, "2")
	}
}
