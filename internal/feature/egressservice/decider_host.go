package egressservice

import (
	"slices"

	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/world"
)

// causeNotLocal is why a node can no longer be the host, beside those that are EgressIPs', too.
const causeNotLocal = "NoLocalEndpoint"

// stay leaves the host where it is, if it can go on there.
func (o *object) stay() {
	switch {
	case o.facts.reason != "":
		o.cause = o.facts.reason
	case o.s.SourceIPBy == world.SourceNetwork:
		o.host = world.HostAll
	case o.s.Host != "" && o.s.Host != world.HostAll:
		if o.cause = o.unfit(o.s.Host); o.cause == "" {
			o.host = o.s.Host
		}
	}
	o.assign()
}

// unfit says why a node cannot be the host, or "". A selector that cannot be read takes none away.
func (o *object) unfit(node string) string {
	n := o.round.W.Node(node)
	if n == nil {
		return handover.CauseDeleted
	}
	if why := handover.Unfit(o.round.W, n); why != "" {
		return why
	}
	switch {
	case o.s.Nodes.Problem == "" && !o.s.Nodes.Matches(n):
		return handover.CauseUnselected
	case o.facts.local != nil && !o.facts.local[node]:
		return causeNotLocal
	}
	return ""
}

// elect chooses a host: of the nodes that can be it, the one that is it for the fewest EgressServices, then the first
// by name. A host whose agent is away stays, if there is no other: it goes on translating.
func (o *object) elect(loads map[string]int) {
	if o.s.Nodes.Problem == "" {
		for _, node := range o.round.W.Nodes() {
			if o.unfit(node) == "" && (o.host == "" || loads[node] < loads[o.host]) {
				o.host = node
			}
		}
	}
	if o.host == "" && o.cause == handover.CauseAgentAway {
		o.host, o.cause = o.s.Host, ""
	}
	o.assign()
}

// assign gives the host the source addresses.
func (o *object) assign() {
	o.items = nil
	if o.host == "" || o.host == world.HostAll {
		return
	}
	for _, ip := range o.facts.sources {
		o.items = append(o.items, world.Assignment{Node: o.host, IP: ip})
	}
}

// inForce says whether pods send nothing with another source. It begins when a live node first holds an address that
// the decision names it for, or with the choice of a host where all were it, for these bound pods' packets already; and
// ends only here, when there is no host.
func (o *object) inForce(f world.Family, p world.Placement) bool {
	held := func(i world.Assignment) bool {
		return world.FamilyOf(i.IP) == f && o.round.Holds(o.s.Key(), i) && o.round.W.Alive(i.Node)
	}
	leaves := func(l world.Leaving) bool { return held(world.Assignment{Node: l.Node, IP: l.IP}) }
	return o.isKept(f) || p.HasItems(f) &&
		(o.s.InForce[f] || o.s.Host == world.HostAll ||
			slices.ContainsFunc(p.Items, held) || slices.ContainsFunc(p.Leaving, leaves))
}
