package egressip

import (
	"slices"

	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// dropUncovered drops what a pod of this node sends to destinations of an EgressIP that stands by for it, annotated to
// have no packet leave with a node's address, and that those before it do not serve: they serve some destinations only,
// and it none.
func dropUncovered(w *world.View, n logicalNetwork, p *world.Pod, f world.Family, out *plan.Rows) {
	if p.Node != w.Self {
		return
	}
	hasAll := func(c world.Claim) bool { return hasAll(w, c.By) }
	for _, s := range w.Standbys(p, f) {
		if s.By.Kind != ref.EgressIP || slices.ContainsFunc(s.For, hasAll) {
			continue
		}
		if e := w.EgressIP(s.By.Name); e.DropWhenUnassigned {
			for _, ip := range f.OfAddrs(egress.Addresses(w, p, n.Network)) {
				dropClaim(w, n, e, f, ip, uncoveredPods, plan.PriorityUncovered, out.For(ownerOfPods(e.Name)))
			}
		}
	}
}

// hasAll says whether an object that has a claim to a pod's packets has one to all of them.
func hasAll(w *world.View, o ref.Object) bool {
	return o.Kind != ref.EgressIP || w.EgressIP(o.Name).Traffic == nil
}
