package service_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// Destinations in the ranges of cluster IPs: of a Service, and of none.
var (
	servedIPs   = []netip.Addr{netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("fd00:10:96::10")}
	unservedIPs = []netip.Addr{netip.MustParseAddr("10.96.77.7"), netip.MustParseAddr("fd00:10:96::7777")}
)

// TestUnservedStaysInside: packets to cluster IPs that no Service has are answered on the node that they are sent on,
// whoever sends them, and reach no link outside.
func TestUnservedStaysInside(t *testing.T) {
	for _, mode := range []world.GatewayMode{world.SharedGateway, world.LocalGateway} {
		net := readPlans(t, unservedPlans(mode))
		for f := range 2 {
			for _, to := range []trace.Packet{
				{Dst: unservedIPs[f], Proto: "tcp", DstPort: 80}, {Dst: unservedIPs[f], Proto: "icmp"},
				{Dst: servedIPs[f], Proto: "tcp", DstPort: 81}, {Dst: servedIPs[f], Proto: "udp", DstPort: 80},
				{Dst: servedIPs[f], Proto: "icmp"},
			} {
				for who, ends := range unservedSenders(net, to, f) {
					if have := trace.Sentences(ends); !strings.HasPrefix(have, "dropped at n") ||
						!strings.Contains(have, ": rejected: ACL unserved/") {
						t.Errorf("%s gateway, %s to %s %s/%d: %s, want rejected", mode, who, to.Dst, to.Proto,
							to.DstPort, have)
					}
				}
			}
		}
	}
}

// unservedSenders sends from a pod with an egress IP on another node, one with none, one behind an EgressService, a
// process of a host, and a host outside that routes by a node's other link.
func unservedSenders(net *trace.Cluster, p trace.Packet, f int) map[string][]trace.End {
	from := func(number, node int) []trace.End {
		q := p
		q.Src = compiletest.PodIPs(number, node)[f]
		return net.Walk(q)
	}
	outside := p
	outside.Src = compiletest.EgressAddr(60)[f]
	return map[string][]trace.End{
		"selected pod": from(0, 1), "other pod": from(3, 1), "pod behind an EgressService": from(1, 2),
		"selected pod of the holder": from(4, 2), "host": net.WalkFromHost("n1", p),
		"host outside, by a link": net.WalkIntoHost("n1", "eth1", outside),
	}
}

// TestServiceRangesNeedNoRoute: what a host sends to cluster IPs does not leave it by another link while the route to
// the node switch is missing.
func TestServiceRangesNeedNoRoute(t *testing.T) {
	plans := unservedPlans(world.SharedGateway)
	for k := range plans["n1"].Routes.Rows() {
		if k.Dst.Contains(servedIPs[0]) || k.Dst.Contains(servedIPs[1]) {
			plans["n1"].Routes.Drop(plans["n1"].Routes.Owner(k), k)
		}
	}
	net := readPlans(t, plans)
	for f, to := range servedIPs {
		for who, ends := range map[string][]trace.End{
			"host": net.WalkFromHost("n1", trace.Packet{Dst: to, Proto: "tcp", DstPort: 80}),
			"host outside, by a link": net.WalkIntoHost("n1", "eth1", trace.Packet{Src: compiletest.EgressAddr(60)[f],
				Dst: to, Proto: "tcp", DstPort: 80}),
		} {
			if have := trace.Sentences(ends); !strings.HasPrefix(have, "dropped at n1: host rule") {
				t.Errorf("%s to %s without a route: %s, want dropped", who, to, have)
			}
		}
	}
}

// unservedPlans are those of three nodes. An EgressIP that n2 holds selects pods 0 and 4, and pod 1 is behind an
// EgressService of n2.
func unservedPlans(mode world.GatewayMode) trace.Network {
	e := compiletest.EgressIP(0, "app=web", compiletest.EgressAddr(0)...)
	e.InForce = [2]bool{true, true}
	for _, ip := range e.IPs {
		e.Items = append(e.Items, world.Assignment{Node: "n2", IP: ip})
	}
	balanced, behind := compiletest.LoadBalancer(1, compiletest.Pod(1, "n2")), compiletest.EgressService(1)
	balanced.ClusterIPs, behind.Host = servedIPs, "n2"
	for _, ip := range balanced.LoadBalancerIPs {
		behind.Items = append(behind.Items, world.Assignment{Node: "n2", IP: ip})
	}
	plans := trace.Network{}
	for _, node := range []string{"n1", "n2", "n3"} {
		w := compiletest.Small(node, mode)
		for number, node := range map[int]string{0: "n1", 1: "n2", 3: "n1", 4: "n2"} {
			p := compiletest.Pod(number, node)
			if w.SetPod(p); w.Self == node {
				w.SetAttachment(compiletest.Attachment(p))
			}
		}
		w.SetNamespace(&world.Namespace{Name: "ns0"})
		w.SetNamespace(&world.Namespace{Name: "ns1"})
		w.SetEgressIP(e)
		w.SetService(balanced)
		w.SetEgressService(behind)
		w.SetHolding(&world.Holding{Node: "n2", BootID: "boot-n2", Holds: map[string][]netip.Addr{e.Name: e.IPs,
			behind.Key(): balanced.LoadBalancerIPs}})
		plans[node] = compile.Full(w, all.Features())
	}
	return plans
}
