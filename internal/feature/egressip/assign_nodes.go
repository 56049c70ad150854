package egressip

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/world"
)

// host is a node that can take egress IPs now, and how many it has; or one that is unfit and goes on (handover.GoesOn).
// That node takes no address, but goes on translating: an address that no other can take stays there.
type host struct {
	node *world.Node
	load int
	away bool
	late bool // it was too late with an address: it is given nothing that another can take
	// notAnswering: the controller cannot tell whether it lives. It is given nothing new.
	notAnswering bool
}

// network is a subnet that hosts have an address in, with those hosts by index.
type network struct {
	cidr  netip.Prefix
	hosts []int
}

// part is what a node adds to finding places.
type part struct {
	node  *world.Node
	unfit string // why it takes no egress IP now; "": it does
	subnets
	keepsOut    string // why it is given none that it has not; "": it is
	unreachable world.Unreachability
	// notAnswering is beside unfit: a node whose agent is away may be one that does not answer, too.
	notAnswering bool
}

// renewNode looks at a node again, and says whether it adds something else than before. A Node that is replaced by an
// equal one counts as changed.
func (a *assigner) renewNode(name string) bool {
	n, old := a.w.Node(name), a.parts[name]
	if n == nil {
		delete(a.parts, name)
		return old != nil
	}
	now := &part{n, a.unfitReason(n), subnetsOf(n, a.w.Faults(name)),
		cmp.Or(unlabelledReason(n), handover.KeepsOut(a.w, n)), a.w.Unreachable(name), a.w.NotAnswering(name)}
	a.parts[name] = now
	return old == nil || old.node != n || old.unfit != now.unfit || old.keepsOut != now.keepsOut ||
		old.unreachable != now.unreachable || old.notAnswering != now.notAnswering ||
		!maps.Equal(old.faults, now.faults)
}

// surveyNodes sums up what the nodes add.
func (a *assigner) surveyNodes() {
	a.hosts, a.nets, a.named = a.hosts[:0], [2][]network{}, newNamed()
	inDoubt, together := handover.NotReadyInDoubt(a.w, a.Turns), a.awayTogether()
	for _, name := range a.world.Nodes() {
		p := a.parts[name]
		a.named.addNode(p.node, p.subnets)
		switch {
		case p.unfit == "", together && p.unfit == handover.CauseAgentAway:
			a.addHost(p)
		case unlabelledReason(p.node) == "" && handover.GoesOn(a.w, p.node, inDoubt || a.Turns.Lately(name)):
			a.hosts = append(a.hosts, host{node: p.node, away: true})
		}
	}
	a.longest.primary, a.longest.secondary = a.named.decidingNetworks()
}

// awayTogether says whether the agents of all egress nodes that are reached are away, so that it may be the controller
// that they do not understand: its certificate has expired, or has another authority. Nodes that die meanwhile must
// have successors. An agent that is away in truth holds nothing, which patience finds.
func (a *assigner) awayTogether() bool {
	away := 0
	for _, p := range a.parts {
		switch {
		case p.unfit == "":
			return false
		case p.unfit == handover.CauseAgentAway:
			away++
		}
	}
	return away > 1
}

func (a *assigner) addHost(p *part) {
	a.hosts = append(a.hosts, host{node: p.node, notAnswering: p.notAnswering})
	for _, cidr := range p.all {
		nets := &a.nets[world.FamilyOf(cidr.Addr())]
		at := slices.IndexFunc(*nets, func(o network) bool { return o.cidr == cidr })
		if at < 0 {
			at = len(*nets)
			*nets = append(*nets, network{cidr: cidr})
		}
		if h := len(a.hosts) - 1; !slices.Contains((*nets)[at].hosts, h) {
			(*nets)[at].hosts = append((*nets)[at].hosts, h)
		}
	}
}

// Why a node does not host an EgressIP's address, or does so no longer, beside what handover says of any object.
const (
	CauseUnlabelled = "NodeUnlabelled"
	CauseNetwork    = "NotInNetwork"
	CauseLink       = "LinkFault"
	CauseSpec       = "SpecChanged"
)

// unfitReason says why a node takes no egress IP now, or "".
func (a *assigner) unfitReason(n *world.Node) string {
	return cmp.Or(unlabelledReason(n), handover.Unfit(a.w, n))
}

// unlabelledReason says so of a node that is no egress node; else "".
func unlabelledReason(n *world.Node) string {
	if _, labelled := n.Labels[world.AssignableLabel]; !labelled {
		return CauseUnlabelled
	}
	return ""
}
