package zone

import (
	"fmt"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// snatUnanswered completes lb_force_snat_ip. By it alone OVN 25.03 translates the source of a balanced connection's
// first packet, and of those that follow the first answer (lr_in_dnat asks for ct.new and the Service's address, or for
// ct.est). Is that first packet lost, or its answer, all others would arrive with the client's address and be answered
// another way: a TCP connection would never be made. A policy marks them where conntrack still says whose they are, for
// lr_out_post_undnat forgets that before rows of NAT are asked; these ask for the mark and the port. The switch beyond
// takes it off, as on a tunnel it would lose the packet (OVS 3.5's userspace datapath looks routes up with it), and the
// host's rules may know it.
func (z ownPart) snatUnanswered() {
	name, gr := z.names.Row("balanced-unanswered"), z.names.GatewayRouter(z.Node.Name)
	join, external := z.names.GatewayToJoin(z.Node.Name), z.names.GatewayToExternal(z.Node.Name)
	z.out.AddNB(plan.RowID{Table: "Logical_Router_Policy", Name: name}, plan.Router(gr), plan.Cols{
		"priority": plan.PriorityAllow, "action": "allow", "nexthops": []string(nil),
		"match":   fmt.Sprintf("inport == %q && ct.new && ct_mark.force_snat == 1", external),
		"options": map[string]string{"pkt_mark": plan.Itoa(plan.MarkBalanced)},
	})
	for _, f := range z.Families() {
		z.addSourceNAT(name, join, z.JoinAddr(z.Node.ID, f).Addr().String(), f)
		if z.Name != ref.DefaultNetwork {
			continue // it balances to its own pods
		}
		if primary, ok := f.Of(z.Host.Primary); ok {
			z.addSourceNAT(name, external, primary.Addr().String(), f)
		}
	}
	z.clearMark(name, z.names.JoinSwitch(), z.names.JoinToGateway(z.Node.Name))
	if z.Name == ref.DefaultNetwork {
		z.clearMark(name, z.names.ExternalSwitch(z.Node.Name), z.names.ExternalToGateway(z.Node.Name))
	}
}

// addSourceNAT gives what has the mark the address of the port by which it leaves.
func (z ownPart) addSourceNAT(name, port, address string, f world.Family) {
	id := plan.RowID{Table: "NAT", Name: name + "/" + port + "/" + f.String()}
	z.out.AddNB(id, plan.Router(z.names.GatewayRouter(z.Node.Name)), plan.Cols{
		"type": "snat", "external_ip": address, "logical_ip": defaultRoute(f),
		"match": fmt.Sprintf("outport == %q && pkt.mark == %d", port, plan.MarkBalanced),
	})
}

// clearMark takes the mark off what comes from the gateway router into a switch.
func (z ownPart) clearMark(name, sw, port string) {
	z.out.AddNB(plan.RowID{Table: "QoS", Name: name + "/" + sw}, plan.Switch(sw), plan.Cols{
		"priority": plan.PriorityReplies, "direction": "from-lport", "action": map[string]string{"mark": "0"},
		"match": fmt.Sprintf("inport == %q && pkt.mark == %d", port, plan.MarkBalanced),
	})
}
