package controller

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/feature/zone"
	"github.com/egret-net/egret/internal/probe"
	"github.com/egret-net/egret/internal/world"
)

// witnesses is how many nodes besides its own a controller probes at least, so that it can tell a dead node from being
// cut off itself.
const witnesses = 3

// probeTargets are the nodes to probe: egress nodes, hosts of EgressServices, those that were found unreachable, the
// leader's for those that stand by, and others until there are enough witnesses. A node that can be the host of an
// EgressService is probed once it is: each can, where there is no selector.
func probeTargets(w *world.World, self, leader string) []probe.Target {
	var out []probe.Target
	var rest []*world.Node // the first that can be witnesses
	others, hosts := 0, serviceHosts(w)
	for _, name := range w.Nodes() {
		n := w.Node(name)
		if len(n.Subnets) == 0 || n.ChassisID == "" {
			continue // its agent has not set it up yet
		}
		_, labelled := n.Labels[world.AssignableLabel]
		if !labelled && !hosts[name] && w.Unreachable(name) == "" && name != leader {
			if len(rest) < witnesses && name != self && n.Ready {
				rest = append(rest, n)
			}
			continue
		}
		out = append(out, targetOf(n))
		if name != self {
			others++
		}
	}
	for _, n := range rest[:min(len(rest), max(0, witnesses-others))] {
		out = append(out, targetOf(n))
	}
	return out
}

func targetOf(n *world.Node) probe.Target {
	return probe.Target{Node: n.Name, Addrs: managementAddrs(n), Direct: primaryAddrs(n)}
}

// serviceHosts are the hosts of EgressServices, and those that were and go on translating.
func serviceHosts(w *world.World) map[string]bool {
	out := map[string]bool{}
	for _, key := range w.EgressServices() {
		s := w.EgressService(key)
		for _, i := range s.Items {
			out[i.Node] = true
		}
		for _, l := range s.Leaving {
			out[l.Node] = true
		}
	}
	return out
}

func managementAddrs(n *world.Node) []netip.Addr {
	var out []netip.Addr
	for _, s := range n.Subnets {
		out = append(out, zone.ManagementAddr(s))
	}
	return out
}

func primaryAddrs(n *world.Node) []netip.Addr {
	var out []netip.Addr
	for _, p := range n.Primary {
		out = append(out, p.Addr())
	}
	return out
}

func sameTarget(a, b probe.Target) bool {
	return a.Node == b.Node && slices.Equal(a.Addrs, b.Addrs) && slices.Equal(a.Direct, b.Direct)
}
