package egressservice

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/decide/patience"
	"github.com/egret-net/egret/internal/world"
)

// causeNotLocal is why a node can no longer be the host, beside those that are EgressIPs', too.
const causeNotLocal = "NoLocalEndpoint"

// keepHost leaves the host where it is, if it can go on there.
func (o *object) keepHost() {
	switch {
	case o.facts.reason != "":
		o.cause = o.facts.reason
	case o.s.SourceIPBy == world.SourceNetwork:
		o.host = world.HostAll
	case o.s.Host != "" && o.s.Host != world.HostAll:
		if o.cause = o.lossReason(); o.cause == "" {
			o.host = o.s.Host
		}
	}
	o.assignSources()
}

// lossReason says why the host must be replaced, or "". One that is unfit but goes on stays where no node takes over,
// unless it never held what it was given and another one whose agent is away may. That is known before any election, so
// it counts for its node in each election: the result follows from the statuses alone.
func (o *object) lossReason() string {
	host := o.s.Host
	switch why := o.unfitReason(host); {
	case why == "" && o.isTooLate(host) && o.anyOnTime(o.candidateHosts()):
		return handover.CauseNotHeld
	case why != "" && o.goesOn() && len(o.candidateHosts()) == 0 &&
		!(o.isTooLate(host) && o.anyOnTime(o.awayTogether())):
		return ""
	default:
		return why
	}
}

// unfitReason says why a node cannot be the host, or "". A selector that cannot be read takes none away.
func (o *object) unfitReason(node string) string { return o.misfitReason(node, handover.Unfit) }

// keepsOut says why a node cannot become the host, or "".
func (o *object) keepsOut(node string) string { return o.misfitReason(node, handover.KeepsOut) }

func (o *object) misfitReason(node string, unfit func(*world.View, *world.Node) string) string {
	n := o.round.W.Node(node)
	if n == nil {
		return handover.CauseDeleted
	}
	if why := unfit(o.round.W, n); why != "" {
		return why
	}
	return mismatchReason(o.s, o.facts.local, n)
}

// mismatchReason says why a node cannot be the host however well it is, or "".
func mismatchReason(s *world.EgressService, local map[string]bool, n *world.Node) string {
	switch {
	case s.Nodes.Problem == "" && !s.Nodes.SelectsNode(n):
		return handover.CauseUnselected
	case local != nil && !local[n.Name]:
		return causeNotLocal
	}
	return ""
}

// isTooLate says whether a node has not held a source for so long that another is to try.
func (o *object) isTooLate(node string) bool {
	return slices.ContainsFunc(o.facts.sources, func(ip netip.Addr) bool {
		return o.patience.Of(o.s.Key(), world.Assignment{Node: node, IP: ip}) == patience.TooLate
	})
}

// anyOnTime says whether any of these nodes was not too late with anything.
func (o *object) anyOnTime(nodes []string) bool {
	late := o.failed.Nodes()
	return slices.ContainsFunc(nodes, func(node string) bool { return !late[node] })
}

// candidateHosts are the nodes that can become the host, by name. As long as a selector cannot be read, none can.
func (o *object) candidateHosts() []string {
	if o.s.Nodes.Problem != "" {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(o.round.W.Nodes()), func(node string) bool { return o.keepsOut(node) != "" })
}

// electHost chooses a host: of the nodes that can become it, one that was not too late with anything, then the one that
// is it for the fewest EgressServices, then the first by name. Without such a node, it is one of those whose agents are
// away, if there are several.
func (o *object) electHost(loads map[string]int) {
	nodes := o.candidateHosts()
	if len(nodes) == 0 {
		nodes = o.awayTogether()
	}
	o.host = o.bestHost(nodes, loads)
	o.assignSources()
}

func (o *object) bestHost(nodes []string, loads map[string]int) (best string) {
	late := o.failed.Nodes()
	better := func(a, b string) bool { return late[b] && !late[a] || late[a] == late[b] && loads[a] < loads[b] }
	for _, node := range nodes {
		if best == "" || better(node, best) {
			best = node
		}
	}
	return best
}

// awayTogether are the nodes that could become the host but for their agents, which are away: if those of several nodes
// are, host or not, it may be the controller that they do not understand. See the same of EgressIPs.
func (o *object) awayTogether() []string {
	if o.s.Nodes.Problem != "" {
		return nil
	}
	w := o.round.W
	away := slices.DeleteFunc(slices.Clone(w.Nodes()), func(node string) bool {
		return handover.Unfit(w, w.Node(node)) != handover.CauseAgentAway
	})
	if len(away) < 2 {
		return nil
	}
	return slices.DeleteFunc(away, func(node string) bool {
		return mismatchReason(o.s, o.facts.local, w.Node(node)) != "" || w.NotAnswering(node)
	})
}

// goesOn says whether the former host is one that goes on translating though it is unfit, as long as no other node
// takes over. That Kubernetes calls it NotReady is always in doubt here, be it the only one: a load balancer may go on
// bringing the Service's packets to it.
func (o *object) goesOn() bool {
	n := o.round.W.Node(o.s.Host)
	return n != nil && mismatchReason(o.s, o.facts.local, n) == "" && handover.GoesOn(o.round.W, n, true)
}

// assignSources gives the host the source addresses.
func (o *object) assignSources() {
	o.items = nil
	if o.host == "" || o.host == world.HostAll {
		return
	}
	for _, ip := range o.facts.sources {
		o.items = append(o.items, world.Assignment{Node: o.host, IP: ip})
	}
}

// assignedSince are what the host has since some time: with all hosts, each family's way, by its unspecified address.
func assignedSince(host string, items []world.Assignment) []world.Assignment {
	if host != world.HostAll {
		return items
	}
	var out []world.Assignment
	for _, f := range families {
		out = append(out, world.Assignment{Node: world.HostAll, IP: f.Unspecified()})
	}
	return out
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
