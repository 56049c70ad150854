package egressservice

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/world"
)

// isKept says whether an EgressService stays in force in a family though it has no host: which nodes could be it is not
// known as long as spec.nodeSelector cannot be read, and a source that a node has to let go of first is free before
// long. Until then no packet leaves rather than one with a node's address.
func (o *object) isKept(f world.Family) bool {
	of := func(ip netip.Addr) bool { return world.FamilyOf(ip) == f }
	bound := o.s.Host == world.HostAll || o.s.InForce[f]
	unread := o.s.Nodes.Problem != "" && o.host == "" && o.facts.reason == "" &&
		slices.ContainsFunc(o.facts.sources, of)
	return bound && (unread || o.facts.awaited[f])
}

// keptUntil is when that ends, for people.
func (o *object) keptUntil() string {
	if o.facts.awaited != [2]bool{} {
		return "an ingress IP that is waited for is free, as condition Assigned says"
	}
	return "spec.nodeSelector can be read"
}

// selectorProblem says what follows from a selector that cannot be read; "" if it can, or has no meaning.
func (o *object) selectorProblem() string {
	if o.s.Nodes.Problem == "" || o.s.SourceIPBy == world.SourceNetwork {
		return ""
	}
	text := o.s.Nodes.Problem + ": mend it; until then "
	if o.host != "" {
		return text + o.host + " stays the host, and no other node is chosen"
	}
	var kept []string
	for _, f := range families {
		if o.isKept(f) {
			kept = append(kept, "IP"+f.String())
		}
	}
	if len(kept) == 0 {
		return text + "no host is chosen, and the pods leave as if there were no EgressService"
	}
	return text + "no host is chosen, and what the pods send outside over " + strings.Join(kept, " and ") +
		" is dropped"
}
