package egressip_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/planetest"
	"github.com/egret-net/egret/internal/world"
)

const nodePort = 30080

// nodePortService has the first pod of compiletest.Pod as endpoint, over UDP.
func nodePortService() *world.Service {
	p := world.ServicePort{Protocol: "udp", Port: 53, NodePort: nodePort}
	for _, ip := range compiletest.Pod(0, "n1").IPs {
		p.Endpoints = append(p.Endpoints, world.Endpoint{AddrPort: netip.AddrPortFrom(ip, 53), Node: "n1", Ready: true})
	}
	return &world.Service{Namespace: "ns0", Name: "s", ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.10"),
		netip.MustParseAddr("fd00:10:96::10")}, Ports: []world.ServicePort{p}}
}

// TestLeakFilter: the bridge drops what a pod under the leak filter sends with its node's address, also by connections
// that it had before, and its ICMP errors about what comes by them. What answers a connection to a node port goes out,
// and so do ICMP errors about that.
func TestLeakFilter(t *testing.T) {
	for f, ends := range [...]struct{ node, outside string }{
		{"172.18.0.2", "172.18.0.100"}, {"fc00:f853:ccd:e793::2", "fc00:f853:ccd:e793::100"},
	} {
		t.Run(world.Family(f).String(), func(t *testing.T) {
			t.Parallel()
			b := newBridge(t, world.Family(f))
			node, outside := netip.MustParseAddr(ends.node), netip.MustParseAddr(ends.outside)
			own, server := netip.AddrPortFrom(node, 4000), netip.AddrPortFrom(outside, 53)
			client, port := netip.AddrPortFrom(outside, 5000), netip.AddrPortFrom(node, nodePort)
			b.receive("eth0", b.datagram(client, port)) // to a Service with the pod as endpoint
			b.leaves("of the pod's own connection", b.datagram(own, server), true)
			b.receive("eth0", b.datagram(server, own))
			b.leaves("of the pod's own connection, established", b.datagram(own, server), true)
			b.leaves("about what came by its own connection", b.unreachable(server, own), true)

			b.s.Ofctl("add-flow", b.s.Mgmt("breth0"), fmt.Sprintf("priority=65535,%s,in_port=ovn,pkt_mark=0,"+
				"actions=set_field:%d->pkt_mark,resubmit(,0)", [...]string{"ip", "ipv6"}[f], plan.MarkFiltered))
			b.s.Appctl("revalidator/wait") // until no packet goes by what was cached of former flows
			b.leaves("of the pod's own connection, under the filter", b.datagram(own, server), false)
			b.leaves("about what came by its own connection, under the filter", b.unreachable(server, own), false)
			b.leaves("of a new connection of its own", b.datagram(netip.AddrPortFrom(node, 4001), server), false)
			b.leaves("that answers a client of the node port", b.datagram(port, client), true)
			b.leaves("about what a client of the node port sent", b.unreachable(client, port), true)
		})
	}
}

// leaves asserts whether a packet that OVN sends goes out.
func (b *bridge) leaves(what, frame string, want bool) {
	b.t.Helper()
	before := b.count("eth0", "tx")
	b.receive("ovn", frame)
	if have := b.count("eth0", "tx") > before; have != want {
		b.t.Errorf("a packet %s goes out: %v, want %v\n%s\n%s", what, have, want, b.s.Ofctl("dump-flows",
			b.s.Mgmt("breth0"), "table=6"), b.s.Appctl("dpctl/dump-conntrack"))
	}
}

// datagram is one of UDP.
func (b *bridge) datagram(from, to netip.AddrPort) string {
	ip := fmt.Sprintf("eth_type(0x0800),ipv4(src=%s,dst=%s,proto=17,tos=0,ttl=64,frag=no)", from.Addr(), to.Addr())
	if from.Addr().Is6() {
		ip = fmt.Sprintf("eth_type(0x86dd),ipv6(src=%s,dst=%s,label=0,proto=17,tclass=0,hlimit=64,frag=no)", from.Addr(),
			to.Addr())
	}
	return fmt.Sprintf("in_port(1),eth(src=02:00:00:00:00:09,dst=%s),%s,udp(src=%d,dst=%d)", b.own, ip, from.Port(),
		to.Port())
}

// unreachable is the ICMP error of who got a datagram of UDP at a port where nobody listens.
func (b *bridge) unreachable(from, to netip.AddrPort) string {
	udp := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, from.Port()), to.Port())
	body := &icmp.DstUnreach{Data: planetest.IPPacket(from.Addr(), to.Addr(), 17, append(udp, 0, 8, 0, 0))}
	m := icmp.Message{Type: ipv4.ICMPTypeDestinationUnreachable, Code: 3, Body: body}
	pseudo, proto := []byte(nil), byte(1)
	if from.Addr().Is6() {
		pseudo, proto = icmp.IPv6PseudoHeader(to.Addr().AsSlice(), from.Addr().AsSlice()), 58
		m.Type, m.Code = ipv6.ICMPTypeDestinationUnreachable, 4
	}
	text, err := m.Marshal(pseudo)
	if err != nil {
		b.t.Fatal(err)
	}
	etherType := map[bool]string{true: "0800", false: "86dd"}[from.Addr().Is4()]
	return strings.ReplaceAll(b.own, ":", "") + "020000000009" + etherType +
		hex.EncodeToString(planetest.IPPacket(to.Addr(), from.Addr(), proto, text))
}
