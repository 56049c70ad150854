package egressip

import (
	"fmt"
	"iter"
	"maps"
	"net/netip"

	"github.com/egret-net/egret/internal/world"
)

// secondaryNetworks is api/v1's AnnotationSecondaryNetworks.
const secondaryNetworks = "egret.k8s.ovn.org/secondary-networks"

// naming is who names a subnet as one of its networks. A node's word alone must not keep an address from nodes that
// have it in another network: it could draw all addresses to itself by naming parts of their network, and leave them
// without a node by saying that it cannot host them.
type naming struct {
	nodes, egress int    // how many nodes do, and how many egress nodes
	name          string // an egress node that does
	confirmed     bool   // people say so, too
}

// isAgreed says whether a subnet is a network that decides which nodes an address can go to: an egress node names it,
// and another node or people do.
func (n naming) isAgreed() bool { return n.egress > 0 && (n.nodes > 1 || n.confirmed) }

// hasSingleNode says whether one egress node alone names it.
func (n naming) hasSingleNode() bool { return n.egress > 0 && !n.isAgreed() }

// describeSubnet is a subnet for people, with the node that alone names it.
func (n naming) describeSubnet(p netip.Prefix) string {
	if n.hasSingleNode() {
		return p.String() + " of node " + n.name
	}
	return p.String()
}

// namedByOther says whether another egress node than that one names it.
func (n naming) namedByOther(name string) bool {
	return n.egress > 1 || n.egress == 1 && n.name != name
}

// named are the subnets of all nodes, whether or not they can host now, and who names them: on primary networks and on
// secondary links.
type named struct{ primary, secondary map[netip.Prefix]naming }

func newNamed() named { return named{map[netip.Prefix]naming{}, map[netip.Prefix]naming{}} }

func (m named) addNode(n *world.Node, s subnets) {
	_, labelled := n.Labels[world.AssignableLabel]
	for p := range s.allSubnets() {
		list := m.secondary
		if s.isPrimary(p) {
			list = m.primary
		}
		was := list[p]
		was.nodes++
		was.confirmed = was.confirmed || n.Confirms(p)
		if labelled {
			was.egress, was.name = was.egress+1, n.Name
		}
		list[p] = was
	}
}

// matchingSubnets yields the subnets of one kind of which something is so.
func matchingSubnets(list map[netip.Prefix]naming, is func(naming) bool) iter.Seq[netip.Prefix] {
	return func(yield func(netip.Prefix) bool) {
		for p, n := range list {
			if is(n) && !yield(p) {
				return
			}
		}
	}
}

// decidingNetworks notes the networks that decide, once all nodes are known.
func (m named) decidingNetworks() (primary, secondary map[netip.Prefix]naming) {
	primary, secondary = maps.Clone(m.primary), maps.Clone(m.secondary)
	for _, list := range []map[netip.Prefix]naming{primary, secondary} {
		maps.DeleteFunc(list, func(_ netip.Prefix, n naming) bool { return !n.isAgreed() })
	}
	return primary, secondary
}

// othersHave returns the longest subnet of an address that an egress node other than that one names; zero without one.
func (m named) othersHave(ip netip.Addr, name string) netip.Prefix {
	besides := func(n naming) bool { return n.namedByOther(name) }
	a, b := world.Longest(matchingSubnets(m.primary, besides), ip), world.Longest(matchingSubnets(m.secondary, besides),
		ip)
	if b.Bits() > a.Bits() {
		return b
	}
	return a
}

// inDoubt says of an address that one egress node alone has it in a longer network than the others do, and what to do;
// "" where that is not so.
func (m named) inDoubt(ip netip.Addr) string {
	p := world.Longest(matchingSubnets(m.secondary, naming.hasSingleNode), ip)
	if !p.IsValid() {
		return ""
	}
	name := m.secondary[p].name
	others := m.othersHave(ip, name)
	if !others.IsValid() || others.Bits() >= p.Bits() {
		return ""
	}
	return fmt.Sprintf("%s is in %s by the word of node %s alone, and in %s by other egress nodes, which can host "+
		"it, too: if they should not, annotate node %s %s=%s",
		ip, p, name, others, name, secondaryNetworks, p)
}
