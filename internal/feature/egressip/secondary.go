package egressip

import (
	"net/netip"

	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/holder"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// An egress IP on a secondary host interface (seed egress-ip.md) is translated by the host's kernel: the cluster router
// hands packets to the management port, one nftables rule an EgressIP marks them, one rule and one table a link route
// them, and one rule an address translates them.

// ownHop is where this node sends its own pods' packets for addresses that it hosts itself: to its gateway router, or
// to the host. An address that is nowhere here must not be steered to: the gateway router would give the pod the node's
// address.
func ownHop(
	w *world.View, e *world.EgressIP, n *world.Node, f world.Family, gateway netip.Addr,
) (hop netip.Addr, ok bool) {
	for _, d := range holder.Duties(w, e.Name, f) {
		primary, link := w.Host().LinkFor(d.IP)
		if link != nil {
			return egress.Management(n, f)
		}
		if !primary {
			return netip.Addr{}, false
		}
	}
	return gateway, true
}

// hostOnLink is all that a node has for an address on a link. If another node answers for it by now (muted) it is no
// longer an address here: packets on their way are translated.
func hostOnLink(
	w *world.View, n *world.Node, e *world.EgressIP, f world.Family, ip netip.Addr, l *world.Link, muted bool,
	out *plan.Rows,
) {
	if !muted {
		plan.Add(&out.Addrs, plan.Addr{Dev: l.Name, Prefix: world.Single(ip)}, plan.AddrSpec{Deprecated: true,
			NoDAD: f == world.V6})
		announceAddress(e.Name, plan.Announcement{Dev: l.Name, IP: ip, MAC: l.MAC}, out)
		// the host would answer for it on its other links too (Linux' arp_ignore 0)
		muteGatewayRouter(w.Config, f, ip, out)
	}
	egress.ToHost(n, f, remotePods.setName(e, f), plan.PriorityEgressIP, onlyTo(e, f), out)
	k := kernel{egress.Host{Family: f, Out: out}, w.Config, l, plan.LinkMark(l.Index)}
	k.addRoutes()
	k.addMarkRules(e, ip)
	k.addTranslation(e, ip)
	plan.Add(&out.Translated, egressOf(e.Name, ip), e.Since(world.Assignment{Node: w.Self, IP: ip}))
	k.filterLeaks(ip)
}

// podOnLink makes a pod's address, on any node, one that the host translates to an egress IP.
func podOnLink(w *world.View, e *world.EgressIP, p *world.Pod, ip, egressIP netip.Addr, out *plan.Rows) {
	if p.Node != w.Self {
		out.AddElem(remotePods.setName(e, world.FamilyOf(ip)), ip.String())
	}
	plan.Add(&out.NFTElems, plan.NFTElem{Set: translatedPods(e, egressIP), Key: ip.String()}, "")
}
