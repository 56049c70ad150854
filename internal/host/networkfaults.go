package host

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// NetworkFaults are this node's networks that can host nothing, with the reason and what to do.
func NetworkFaults(w *world.World, n *world.Node, h *world.Host) map[netip.Prefix]string {
	faults := h.Faults()
	gone := lostNetworks(n, w.Holding(n.Name), h)
	if len(gone) == 0 {
		return faults
	}
	for _, name := range w.EgressIPs() {
		e := w.EgressIP(name)
		for _, ip := range e.IPs {
			network := world.Longest(slices.Values(gone), ip)
			if network.IsValid() && !isPlacedElsewhere(e, ip, n.Name, h) {
				faults[network] = lossOf(network)
			}
		}
	}
	return faults
}

// lostNetworks are networks that this node said it has, or has lost, and that it has no address in: its link is gone,
// or the address. Kubernetes is all that remembers: first the annotation, then the report.
func lostNetworks(n *world.Node, said *world.Holding, h *world.Host) []netip.Prefix {
	networks := n.Networks()
	if said != nil {
		networks = slices.AppendSeq(networks, maps.Keys(said.Faults))
	}
	faults := h.Faults()
	return slices.DeleteFunc(networks, func(network netip.Prefix) bool {
		_, faulty := faults[network]
		return faulty || slices.ContainsFunc(h.CIDRs(), func(p netip.Prefix) bool { return p.Masked() == network })
	})
}

// isPlacedElsewhere says whether an address has another node, or another place here: then nobody need know of what this
// node has lost.
func isPlacedElsewhere(e *world.EgressIP, ip netip.Addr, self string, h *world.Host) bool {
	primary, link := h.LinkFor(ip)
	node := e.Assignee(ip)
	return primary || link != nil || node != "" && node != self
}

func lossOf(network netip.Prefix) string {
	text := fmt.Sprintf("no link has an address in %s any more: bring the one back that had, with its address", network)
	if network.Addr().Is6() {
		text += " (a link that goes down loses those of IPv6)"
	}
	return text
}

// FaultsKnown says whether the others can know by now why networks of this host are about to go.
func FaultsKnown(said *world.Holding, faults map[netip.Prefix]string) bool {
	for network := range faults {
		if said == nil || said.Faults[network] == "" {
			return false
		}
	}
	return true
}

// FaultProblems are faults as problems of a node.
func FaultProblems(faults map[netip.Prefix]string) []world.Problem {
	var out []world.Problem
	for network, why := range faults {
		out = append(out, kube.Fault(network, why))
	}
	slices.SortFunc(out, world.Problem.Compare)
	return out
}
