package service

import (
	"fmt"

	"net/netip"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// keepClients is the way by which the host sends in what is to keep its client's address, to LocalOnly, and in shared
// gateway mode the way back: pods' answers go to their node's gateway router, which does not know these connections. So
// the node switch marks what comes by that way, and in the zone of conntrack of the pod's port the connection gets a
// label. What answers it has the label, and is led to the management port.
func keepClients(w *world.View, f world.Family, subnet netip.Prefix, out *plan.Rows) {
	names, at := plan.DefaultNames(), w.Config.LocalOnly(f)
	key := plan.RouteKey{Table: mainTable, Dst: world.Single(at)}
	plan.Claim(&out.Routes, key, plan.Route{Dev: names.ManagementPort(), Via: world.Nth(subnet, 1)})
	if w.Config.GatewayMode == world.LocalGateway {
		return // all that pods send outside goes to the management port
	}
	ip, sw := f.Match(), plan.Switch(names.NodeSwitch(w.Self))
	asked := fmt.Sprintf("inport == %q && %s.dst == %s", names.HostPort(w.Self), ip, at)
	out.AddMark("service-by-host."+f.String(), sw, plan.PriorityByHost, asked, plan.MarkByHost)
	marked := "pkt.mark == " + plan.Itoa(plan.MarkByHost)
	out.AddLabel("service-by-host."+f.String(), sw, plan.PriorityByHost, ip+" && "+marked, plan.MarkByHost)
	answers := fmt.Sprintf("%s.src == %s && ct.trk && ct.rpl && ct_label.obs_point_id == %d", ip, subnet, plan.MarkByHost)
	out.AddMark("service-answer-to-host."+f.String(), sw, plan.PriorityByHost, answers, plan.MarkByHost)
	back := fmt.Sprintf("inport == %q && %s && %s", names.RouterToNodeSwitch(w.Self), ip, marked)
	to := []string{world.Nth(subnet, 2).String()}
	out.AddPolicy(names, "service-answer-to-host."+f.String(), plan.PriorityAnswerHost, back, "reroute", to, nil)
}
