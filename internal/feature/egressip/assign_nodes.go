package egressip

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/world"
)

// host is a node that can take egress IPs now, and how many it has; or one whose agent is away. That one takes none,
// but goes on translating as it did: what no other can take stays there.
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
	notAnswering bool // it takes none that it has not
}

// keepsOut says why a node is given no egress IP that it has not, or "".
func (p *part) keepsOut() string {
	if p.unfit == "" && p.notAnswering {
		return CauseNotAnswering
	}
	return p.unfit
}

// renewNode looks at a node again, and says whether it adds something else than before. A Node that is replaced by an
// equal one counts as changed.
func (a *assigner) renewNode(name string) bool {
	n, old := a.w.Node(name), a.parts[name]
	if n == nil {
		delete(a.parts, name)
		return old != nil
	}
	now := &part{n, a.unfit(n), subnetsOf(n, a.w.Faults(name)), a.w.NotAnswering(name)}
	a.parts[name] = now
	return old == nil || old.node != n || old.unfit != now.unfit || old.notAnswering != now.notAnswering ||
		!maps.Equal(old.faults, now.faults)
}

// survey sums up what the nodes add.
func (a *assigner) survey() {
	a.names = slices.Sorted(maps.Keys(a.parts))
	a.hosts, a.nets, a.named = a.hosts[:0], [2][]network{}, newNamed()
	for _, name := range a.names {
		p := a.parts[name]
		a.named.add(p.node, p.subnets)
		switch p.unfit {
		case "":
			a.addHost(p)
		case CauseAgentAway:
			a.hosts = append(a.hosts, host{node: p.node, away: true})
		}
	}
	a.longest.primary, a.longest.secondary = a.named.settle()
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

// Why a node does not host an address, or does so no longer.
const (
	CauseUnlabelled   = "NodeUnlabelled"
	CauseUnselected   = handover.CauseUnselected
	CauseDeleting     = handover.CauseDeleting
	CauseDeleted      = handover.CauseDeleted
	CauseNotReady     = handover.CauseNotReady
	CauseNotSetUp     = handover.CauseNotSetUp
	CauseUnreachable  = handover.CauseUnreachable
	CauseAgentAway    = handover.CauseAgentAway
	CauseNetwork      = "NotInNetwork"
	CauseLink         = "LinkFault"
	CauseSpec         = "SpecChanged"
	CauseCordoned     = handover.CauseCordoned
	CauseNotAnswering = "NodeNotAnswering"
	CauseNotHeld      = "NotHeld"
)

// unfit says why a node takes no egress IP now, or "".
func (a *assigner) unfit(n *world.Node) string {
	if _, labelled := n.Labels[AssignableLabel]; !labelled {
		return CauseUnlabelled
	}
	return handover.Unfit(a.w, n)
}
