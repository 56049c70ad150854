package egressip

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Waiting says whether an EgressIP has a claim to packets of a pod of this node that no node is ready for. The pod's
// packets there would now leave with another source, or not at all. A pod that starts waits for this to end; zero is
// the answer when it need not.
func Waiting(w *world.View, key string) ref.Object {
	p := w.Pod(key)
	if p == nil {
		return ref.Object{}
	}
	n, here := networkHere(w, w.PrimaryNetwork(p.Namespace))
	if !here {
		return ref.Object{}
	}
	for _, f := range w.Config.Families() {
		ips := f.OfAddrs(egress.Addresses(w, p, n.Network))
		if len(ips) == 0 {
			continue
		}
		for _, c := range w.Claims(p, n.Network, f) {
			if c.By.Kind != ref.EgressIP || n.unserved(w, c) != "" {
				continue
			}
			s := n.steerPods(w, w.EgressIP(c.By.Name), f)
			waits := func(ip netip.Addr) bool {
				return egress.Waits(w, c.By, world.PodAddr{Network: n.ID, IP: ip}, s.nodes)
			}
			if s.action != "reroute" || s.hasUnreported() || slices.ContainsFunc(ips, waits) {
				return c.By
			}
		}
	}
	return ref.Object{}
}
