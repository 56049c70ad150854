package egress

import (
	"net/netip"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Addresses are a pod's in a network: the attachment's where the pod is ours, which knows before the API tells.
func Addresses(w *world.View, p *world.Pod, network string) []netip.Addr {
	if p.Node != w.Self {
		return w.PodIPs(p, network)
	}
	if a := w.Attachment(p.Key()); a != nil && a.UID == p.UID {
		return a.In(network)
	}
	return w.PodIPs(p, network)
}

// Pause has a pod send nothing outside the cluster by a network.
func Pause(w *world.View, n plan.Names, f world.Family, ip netip.Addr, out *plan.Rows) {
	out.AddElem(n.Row(PausedPods(f)), ip.String())
	if n.Network == ref.DefaultNetwork {
		Filter(w, f, ip, out)
	}
}

// Management is the address of a node's management port, by which packets go to its host.
func Management(n *world.Node, f world.Family) (netip.Addr, bool) {
	s, ok := f.Of(n.Subnets)
	if !ok {
		return netip.Addr{}, false
	}
	return world.Nth(s, 2), true
}
