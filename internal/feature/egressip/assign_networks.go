package egressip

import (
	"iter"
	"maps"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/world"
)

// subnets are those that a node has addresses in.
type subnets struct {
	all     []netip.Prefix
	primary []netip.Prefix
	faults  map[netip.Prefix]string // of links that can host nothing now, by the node's own words
}

// longest are the networks of egress nodes that decide: those that one of them does not name alone.
type longest struct{ primary, secondary map[netip.Prefix]naming }

func subnetsOf(n *world.Node, faults map[netip.Prefix]string) subnets {
	s := subnets{all: n.Networks(), faults: faults}
	for _, p := range n.Primary {
		s.primary = append(s.primary, p.Masked())
	}
	return s
}

// allSubnets yields all, each once.
func (s subnets) allSubnets() iter.Seq[netip.Prefix] {
	return func(yield func(netip.Prefix) bool) {
		for _, p := range s.all {
			if !yield(p) {
				return
			}
		}
		for p := range s.faults {
			if !slices.Contains(s.all, p) && !yield(p) {
				return
			}
		}
	}
}

func (s subnets) isPrimary(p netip.Prefix) bool { return slices.Contains(s.primary, p) }

// longestSubnetOf returns the longest subnet of a node that an address belongs to, and the node's hindrance to hosting
// it; zero without such a subnet.
func (s subnets) longestSubnetOf(ip netip.Addr) (cidr netip.Prefix, fault string) {
	cidr = world.Longest(slices.Values(s.all), ip)
	if f := world.Longest(maps.Keys(s.faults), ip); f.Bits() >= cidr.Bits() && f.IsValid() {
		cidr = f
	}
	return cidr, s.faults[cidr]
}

// inNetwork says whether a node has a usable link into the subnet of an address.
func (a *assigner) inNetwork(n *world.Node, ip netip.Addr) bool {
	cidr, fault := a.parts[n.Name].longestSubnetOf(ip)
	return cidr.IsValid() && fault == ""
}

// faultFor is what a node says of its link into the subnet of an address, or "".
func (a *assigner) faultFor(n *world.Node, ip netip.Addr) string {
	_, fault := a.parts[n.Name].longestSubnetOf(ip)
	return fault
}

// eachCandidate yields the hosts that an address can go to: those that answer and its object selects, with a link into
// its subnet. Where egress nodes agree that it is in a secondary network, longer than any primary one that they agree
// on, nobody is one who has it in a shorter network. The word of one of them alone takes it from no other.
func (a *assigner) eachCandidate(e *world.EgressIP, ip netip.Addr, found func(host int)) {
	secondary := world.Longest(maps.Keys(a.longest.secondary), ip)
	primary := world.Longest(maps.Keys(a.longest.primary), ip)
	for _, net := range a.nets[world.FamilyOf(ip)] {
		if !net.cidr.Contains(ip) || secondary.Bits() > primary.Bits() && net.cidr.Bits() < secondary.Bits() {
			continue
		}
		for _, h := range net.hosts {
			n := a.hosts[h].node
			if cidr, fault := a.parts[n.Name].longestSubnetOf(ip); cidr == net.cidr && fault == "" && mayHost(e, n) &&
				!a.hosts[h].notAnswering {
				found(h)
			}
		}
	}
}
