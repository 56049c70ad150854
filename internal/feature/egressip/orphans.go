package egressip

import (
	"net/netip"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Orphans pauses the egress of attached pods whose source nothing decides:
//
//   - A pod that Kubernetes does not know, until it is detached. A pod that was deleted by force is gone from the API
//     at once, or has a successor of its name, and its processes live on for a moment.
//   - A pod whose addresses are not in its node's subnets. Its Node was deleted and registered again, and got others.
//     Other nodes do not take such addresses for the pod's, and a pod of another node may have them.
type Orphans struct{}

func (Orphans) Name() string    { return "egressip-orphan" }
func (Orphans) Per() world.Kind { return world.KindAttachment }

// Compile pauses the egress of an attached pod. An agent that starts does not know any object yet: a pod goes on
// sending as before.
func (Orphans) Compile(w *world.View, key string, out *plan.Rows) {
	a, p := w.Attachment(key), w.Pod(key)
	if a == nil || a.Unfiltered {
		return
	}
	hasObject := p != nil && p.UID == a.UID
	for _, i := range a.Interfaces() {
		if !hasObject {
			pauseInterface(w, i.Network, i.IPs, out)
			continue
		}
		for _, ip := range i.IPs {
			if w.IsOutsideSubnets(i.Network, ip) {
				pauseInterface(w, i.Network, []netip.Addr{ip}, out)
				tellOutside(w, p, i.Network, ip, out)
			}
		}
	}
}

// tellOutside adds a problem to each object that has a claim to packets from an address that is not in the node's
// subnets.
func tellOutside(w *world.View, p *world.Pod, network string, ip netip.Addr, out *plan.Rows) {
	for _, c := range w.Claims(p, network, world.FamilyOf(ip)) {
		plan.Add(&out.Problems, plan.Problem{Object: c.By, Reason: world.ReasonUnserved, Message: "some pods of this " +
			"node that it selects send nothing outside: their addresses are not in the node's subnets, which have changed. " +
			"Delete these pods, so that they start with other addresses"}, plan.None{})
	}
}
