package world

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/destinations"
)

// flagName is the one, of agents and controllers alike, that sets a range; "" if it is fixed.
func (s OwnSubnet) flagName() string {
	v := FamilyOf(s.CIDR.Addr()).String()
	return map[string]string{"pod": "--cluster-subnets", "service": "--service-subnets",
		"join": "--gateway-" + v + "-join-subnet", "transit": "--cluster-manager-" + v + "-transit-subnet",
		"masquerade": "--gateway-" + v + "-masquerade-subnet", "slot": "--egressip-" + v + "-slot-subnet"}[s.What]
}

// noMachines are the ranges in which no machine has an address (RFC 6890; of multicast, RFC 5771 and RFC 4291).
func noMachines() []OwnSubnet {
	return []OwnSubnet{
		{"this network's", netip.MustParsePrefix("0.0.0.0/8")},
		{"loopback", netip.MustParsePrefix("127.0.0.0/8")},
		{"multicast", netip.MustParsePrefix("224.0.0.0/4")},
		{"loopback", netip.MustParsePrefix("::/127")},
		{"multicast", netip.MustParsePrefix("ff00::/8")},
	}
}

// CheckSubnets refuses ranges of the cluster that have addresses in common, for one address would then mean two things.
// It refuses those whose addresses no machine can have, and those of Services of a family that pods lack. It names each
// and what to change.
func (c *Config) CheckSubnets() error {
	errs := []error{c.checkServiceFamilies()}
	all := append(c.OwnSubnets(), c.masqueradeSubnets()...)
	for i, a := range all {
		for _, b := range noMachines() {
			if a.CIDR.Overlaps(b.CIDR) {
				errs = append(errs, fmt.Errorf("%s has addresses that no machine can have: give %s a range outside %s (%s)",
					a, a.flagName(), b.CIDR, b.What))
			}
		}
		for _, b := range all[i+1:] {
			if a.CIDR.Overlaps(b.CIDR) {
				errs = append(errs, fmt.Errorf("%s and %s overlap: %s", a, b, remedyFlag(a, b)))
			}
		}
	}
	return errors.Join(errs...)
}

func (c *Config) checkServiceFamilies() error {
	for _, p := range c.ServiceSubnets {
		if f := FamilyOf(p.Addr()); len(c.Cluster(f)) == 0 {
			return fmt.Errorf("service subnet %s is of IP%s, and pods have no such addresses: give --service-subnets and "+
				"--cluster-subnets ranges of the same families", p, f)
		}
	}
	return nil
}

// OverlappedBy says which of a host's networks have addresses in common with a range of the cluster, one sentence each,
// with what to do. An address that is alone in its network is not one: hosts have Services' on links of their own
// (NodeLocal DNSCache).
func (c *Config) OverlappedBy(h *Host) []string {
	var out []string
	for _, n := range h.hostNetworks() {
		for _, r := range append(c.OwnSubnets(), c.masqueradeSubnets()...) {
			if hasHostRoom(n.CIDR) && n.CIDR.Overlaps(r.CIDR) {
				out = append(out, fmt.Sprintf("%s and %s overlap, and who has an address in both is not reached: "+
					"use another network there%s", n, r, orFlag(r)))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Overlapped are ranges of the cluster that have addresses in common with destinations of EgressIPs, as people know
// them. That leaves the traffic inside the cluster as it is.
func (c *Config) Overlapped(s destinations.Set) []string {
	var out []string
	for _, r := range append(c.OwnSubnets(), c.masqueradeSubnets()...) {
		if s.Overlaps(destinations.Of(r.CIDR)) {
			out = append(out, r.String())
		}
	}
	return out
}

func (s OwnSubnet) String() string { return s.What + " subnet " + s.CIDR.String() }

func (c *Config) masqueradeSubnets() []OwnSubnet {
	var out []OwnSubnet
	for _, p := range c.MasqueradeSubnets {
		out = append(out, OwnSubnet{"masquerade", p})
	}
	return out
}

// remedyFlag names a flag that the user can change, the second's if it has one.
func remedyFlag(a, b OwnSubnet) string {
	switch first, second := a.flagName(), b.flagName(); {
	case second != "":
		return "give " + second + " a range outside " + a.CIDR.String()
	case first != "":
		return "the latter is fixed; give " + first + " a range outside " + b.CIDR.String()
	}
	return "both are fixed"
}

func orFlag(s OwnSubnet) string {
	if flag := s.flagName(); flag != "" {
		return ", or build the cluster with another " + flag
	}
	return ""
}

// hostNetwork is a network that a host has an address in, by a link of it.
type hostNetwork struct {
	Link string
	CIDR netip.Prefix
}

func (n hostNetwork) String() string { return "network " + n.CIDR.String() + " of " + n.Link }

func (h *Host) hostNetworks() []hostNetwork {
	var out []hostNetwork
	for _, p := range slices.Concat(h.Primary, h.Uplink) {
		out = append(out, hostNetwork{"the uplink", p.Masked()})
	}
	for _, l := range h.Links {
		for _, p := range l.Addrs {
			out = append(out, hostNetwork{"link " + l.Name, p.Masked()})
		}
	}
	return out
}
