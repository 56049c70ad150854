package egress

import (
	"net/netip"

	"github.com/egret-net/egret/internal/holder"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Forward sends to another node that says that it translates to an address, too, what comes here for none of this
// node's connections. To the former holder that is what answers its own, from hosts that have received the successor's
// announcement before all pods' nodes have rerouted; to the successor, what comes from hosts that have not received it,
// or were answered by the former holder last. Whether the other answers this node is all the same: pods' nodes may. The
// frame has this node's source address, or switches would look for its sender here. That node had no use for its own
// packets to this one; the time to live bounds the path of a packet that none of several nodes knows.
func Forward(w *world.View, e plan.Egress, own string, out *plan.Rows) {
	other := otherHolder(w, e.Object.Key(), e.IP)
	if other == nil || !other.UplinkMAC.IsValid() {
		return
	}
	match := forwardMatch[world.FamilyOf(e.IP)] + e.IP.String() +
		",in_port={" + w.Config.UplinkInterface + "},dl_dst=" + own
	out.AddFlow(w.Config.Bridge, plan.Forward, match,
		"set_field:"+own+"->eth_src,set_field:"+other.UplinkMAC.String()+"->eth_dst,dec_ttl,in_port")
	out.AddFlow(w.Config.Bridge, plan.ForwardedBack, match+",dl_src="+other.UplinkMAC.String(), "drop")
	plan.Add(&out.Forwarded, e, plan.None{})
}

var forwardMatch = [...]string{"ip,nw_dst=", "ipv6,ipv6_dst="}

// otherHolder is the other node that says it holds an address, or nil: of several the one that is assigned it, else
// the one that left it last, else one that answers.
func otherHolder(w *world.View, object string, ip netip.Addr) *world.Node {
	p := w.PlacementOf(object)
	last := holder.StandIn(w, p, object, ip)
	rank := func(name string) int {
		switch {
		case p.Assignee(ip) == name:
			return 3
		case last == name:
			return 2
		case w.Alive(name):
			return 1
		}
		return 0
	}
	var best *world.Node
	for _, name := range w.Holders(object, ip) {
		if n := w.Node(name); n != nil && name != w.Self && (best == nil || rank(name) > rank(best.Name)) {
			best = n
		}
	}
	return best
}
