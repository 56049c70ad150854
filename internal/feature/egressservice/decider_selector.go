package egressservice

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/world"
)

// isKept says whether an EgressService stays in force in a family though it has no host: which nodes could be it is not
// known as long as spec.nodeSelector cannot be read. Until it is, no packet leaves rather than one with a node's
// address.
func (o *object) isKept(f world.Family) bool {
	of := func(ip netip.Addr) bool { return world.FamilyOf(ip) == f }
	bound := o.s.Host == world.HostAll || o.s.InForce[f]
	return bound && o.s.Nodes.Problem != "" && o.host == "" && o.facts.reason == "" &&
		slices.ContainsFunc(o.facts.sources, of)
}

// unreadable says what follows from a selector that cannot be read; "" if it can, or has no meaning.
func (o *object) unreadable() string {
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
