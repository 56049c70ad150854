package egress

import (
	"net/netip"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// FilteredPods is the set of this node's pods under the leak filter, in OVN and in nftables: all that they send outside
// leaves with the source that an object gives it, or not at all. They are those that a policy steers or drops whatever
// the destination, and those with paused egress. All rows about such a pod but the one that steers it match this set,
// so that a pod that comes or goes is a change of two sets.
func FilteredPods(f world.Family) string { return "egressip-guarded-pods." + f.String() }

// ThroughHost says whether packets of pods under the leak filter can meet the host's kernel on their way outside, which
// masquerades what pods send.
func ThroughHost(w *world.View) bool {
	h := w.Host()
	return w.Config.GatewayMode == world.LocalGateway || h != nil && len(h.Links) > 0 || w.HasBeenHost()
}

// Filter puts all that a pod of this node sends outside by a network under the leak filter.
func Filter(w *world.View, n plan.Names, f world.Family, ip netip.Addr, out *plan.Rows) {
	out.AddElem(n.Row(FilteredPods(f)), ip.String())
	if n.Network == ref.DefaultNetwork && ThroughHost(w) {
		// an orphan is known before the node is, whose rules bring the set
		Host{f, out}.AddSet(FilteredPods(f))
		plan.Add(&out.NFTElems, plan.NFTElem{Set: FilteredPods(f), Key: ip.String()}, "")
	}
}

// DropOnHost drops what pods of a set begin through the host without an egress mark, but to nodes: the host would give
// it its own address. beside is what else a packet must have, with a space before it. The set is grown before the
// logical network steers, and shrunk after it: packets by a path that is no longer, or not yet, in force are dropped.
func DropOnHost(w *world.View, f world.Family, pods, beside string, out *plan.Rows) {
	h := Host{f, out}
	h.AddSet(pods)
	h.AddSet(HostNodeIPs(f))
	h.AddRule(out.AddChain(plan.ChainForward), plan.ForwardUntranslated+pods,
		"iifname %q ct direction original meta mark & %#x != %#x %s saddr @%s%s %s daddr != @%s%s counter drop",
		plan.DefaultNames().ManagementPort(), plan.MarkEgressMask, plan.MarkEgress,
		h.IP(), pods, beside, h.IP(), HostNodeIPs(f), NotTo(f, w.Config.Cluster(f)))
}
