// Package gateway compiles the place where the cluster meets the outside: the bridge of the uplink, the management
// port, the host's own forwarding, and the node's address as source of everything that no egress feature claims.
//
// In: facts of this very host, and flags. The bridge's flows need nothing else: after a restart of ovs-vswitchd they
// are gone, and the API server may be behind that very bridge. Out: flows, ports, addresses, routes, nftables rows, NAT
// rows and policies.
package gateway

import (
	"fmt"
	"net/netip"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Bridge is the flows of the uplink's bridge. Host and gateway router share the node's addresses and its hardware
// address: ct_mark in zone 64000 tells whose connection a packet is of (1 OVN, 2 host).
type Bridge struct{}

func (Bridge) Name() string    { return "gateway-bridge" }
func (Bridge) Per() world.Kind { return world.KindHost }

const (
	// neighbours are ND's messages, RFC 4861: they belong to no connection.
	neighbourFirst, neighbourLast = 133, 137
	advertisement                 = 136
	// forAll matches frames to a broadcast or multicast address.
	forAll = "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00"
)

// Compile adds the flows. The bridge is secure: a packet passes only if a flow allows it, and after a restart none
// does.
func (Bridge) Compile(w *world.View, _ string, out *plan.Rows) {
	h := w.Host()
	if h == nil || h.UplinkMAC == "" {
		return
	}
	b := flows{bridge: w.Config.Bridge, uplink: uplinkPort(w), mac: h.UplinkMAC, out: out}
	b.userspace = w.Config.UserspaceOVS
	b.addLinkFlows()
	b.addNeighbourFlows()
	b.addAnswerFlows(h.Primary)
	for _, p := range h.Primary {
		f := world.FamilyOf(p.Addr())
		b.addFamilyFlows(f, p.Addr(), w.Config)
		b.addInboundFlows(f, append(hostPrefixes(f, h.Addrs), w.Config.Cluster(f)...))
	}
	for _, f := range w.Config.Families() {
		if _, has := f.Of(h.Primary); !has {
			b.dropFamily(f, w.Config)
		}
	}
}

func uplinkPort(w *world.View) string { return "{" + w.Config.UplinkInterface + "}" }

// bothSides gives a packet to the host, and a copy to OVN.
func bothSides() string { return fmt.Sprintf("LOCAL,resubmit(,%d)", plan.CopyToOVN.Table()) }

type flows struct {
	bridge, uplink, mac string
	userspace           bool
	out                 *plan.Rows
}

func (b flows) addFlow(at plan.Stage, match, actions string) {
	b.out.AddFlow(b.bridge, at, match, actions)
}

// addLinkFlows is everything below IP: ARP above all. Both sides receive what is for all, and what is for the hardware
// address they share. The copy for OVN is a flow of its own, in table 2: the host must be reachable before
// ovn-controller has made the patch port.
func (b flows) addLinkFlows() {
	b.addFlow(plan.CopyToOVN, "in_port="+b.uplink, "output:"+plan.PatchPort)
	if b.userspace {
		b.addFlow(plan.Announced, "arp,in_port="+b.uplink+","+forAll, plan.ARPAnew+bothSides())
	}
	b.addFlow(plan.FramesToNode, "in_port="+b.uplink+",dl_dst="+b.mac, bothSides())
	b.addFlow(plan.OtherFrames, "in_port="+b.uplink+","+forAll, bothSides())
	b.addFlow(plan.OtherFrames, "in_port=LOCAL", "output:"+b.uplink)
	b.fromOVN()
}

// fromOVN lets out what a network sends beside IP.
func (b flows) fromOVN() {
	b.addFlow(plan.OtherFrames, "in_port="+plan.PatchPort, "output:"+b.uplink)
}

func (b flows) addNeighbourFlows() {
	for t := neighbourFirst; t <= neighbourLast; t++ {
		icmp := fmt.Sprintf("icmp6,icmp_type=%d,", t)
		actions := bothSides()
		if t == advertisement && b.userspace {
			actions = plan.NDAnew + actions
		}
		b.addFlow(plan.Neighbours, icmp+"in_port="+b.uplink, actions)
		b.addFlow(plan.Neighbours, icmp+"in_port=LOCAL", "output:"+b.uplink)
	}
	b.neighboursFromOVN()
}

// noTunnels drops what a network sends to the port of nodes' tunnels. A pod's packets leave with the node's address, so
// it would look like a packet of that node's own, and the receiver would believe its content. OVN sends its own by the
// host's addresses and routes, and never here.
func (b flows) noTunnels(f world.Family, port int) {
	match := fmt.Sprintf("%s,in_port=%s,tp_dst=%d", [...]string{"udp", "udp6"}[f], plan.PatchPort, port)
	b.addFlow(plan.ForgedTunnel, match, "drop")
}

func (b flows) neighboursFromOVN() {
	for t := neighbourFirst; t <= neighbourLast; t++ {
		// A router's own messages have the hop limit 255 (RFC 4861, 6.1), and a pod's, which it has routed, have less.
		match := fmt.Sprintf("icmp6,icmp_type=%d,nw_ttl=255,in_port=%s", t, plan.PatchPort)
		b.addFlow(plan.Neighbours, match, "output:"+b.uplink)
	}
}

// addAnswerFlows lets OVN answer ARP and ND for what its gateway router has itself: the node's addresses, and
// link-local ones. It answers for an egress IP, too, as soon as it translates to it. That passes by the address's lease
// (egressip), and nothing passes as long as this is not in the switch: an agent that dies before leaves nobody who
// answers for ever.
func (b flows) addAnswerFlows(primary []netip.Prefix) {
	var node []netip.Prefix
	for _, p := range primary {
		node = append(node, world.Single(p.Addr()))
	}
	for f, said := range [...]string{"arp,arp_op=2", "icmp6,icmp_type=136"} {
		said += ",in_port=" + plan.PatchPort
		b.addFlow(plan.AnswerUnleased, said, "drop")
		for _, p := range append(node, linkLocal()) {
			if world.FamilyOf(p.Addr()) == world.Family(f) {
				about := [...]string{",arp_spa=", ",nd_target="}[f] + p.String()
				b.addFlow(plan.AnswerAsNode, said+about, "output:"+b.uplink)
			}
		}
	}
}

// addFamilyFlows is seed egress-ip.md, "Pod to node IP traffic" and "Dealing with non SNATed traffic": 105 asks for the
// node's address, 103 drops what should have been translated and was not, 100 remembers whose the connection is. There
// is no bypass (109) for local pods.
func (b flows) addFamilyFlows(f world.Family, node netip.Addr, w *world.Config) {
	ip := protocolKeyword(f)
	b.noTunnels(f, w.EncapPort)
	b.addFlow(plan.AsNode, fmt.Sprintf("%s,in_port=%s,pkt_mark=%#x", ip, plan.PatchPort, plan.MarkNodeIP),
		b.outputActions(plan.CommitAs(node.String())))
	for _, k := range untranslatedFlows(b.bridge, w.Cluster(f), b.userspace) {
		plan.Add(&b.out.Flows, k, "drop")
	}
	b.addFlow(plan.Outbound, ip+",in_port="+plan.PatchPort, b.outputActions(plan.CommitOVN()))
	b.addFlow(plan.Outbound, ip+",in_port=LOCAL", b.outputActions(plan.CommitHost()))
	b.addFlow(plan.Inbound, ip+",in_port="+b.uplink,
		fmt.Sprintf("ct(zone=%d,nat,table=%d)", plan.ZoneGateway, plan.Established.Table()))
	b.repliesToOVN(ip)
	b.repliesToHost(ip)
}

// dropFamily is a family in which the uplink has no address (IPv6 whose duplicates are still looked for, or that DHCP
// has not given yet): nothing that a network sends can get a source there, and nothing leaves. Routers outside may
// announce themselves all the same, and the gateway router have a route to them.
func (b flows) dropFamily(f world.Family, w *world.Config) {
	for _, k := range untranslatedFlows(b.bridge, w.Cluster(f), b.userspace) {
		plan.Add(&b.out.Flows, k, "drop")
	}
	b.addFlow(plan.Outbound, protocolKeyword(f)+",in_port="+plan.PatchPort, "drop")
}

// outputActions sends out what an action of conntrack has committed.
func (b flows) outputActions(commit string) string {
	if b.userspace {
		b.addFlow(plan.LetOut, "", "output:"+b.uplink)
	}
	return plan.Leaves(commit, b.uplink, b.userspace)
}

// untranslatedFlows are the flows that drop packets with a pod's address as source, which OVN, or the host, would send
// out.
func untranslatedFlows(bridge string, pods []netip.Prefix, userspace bool) []plan.Flow {
	var out []plan.Flow
	for _, c := range pods {
		f := world.FamilyOf(c.Addr())
		ip, source := protocolKeyword(f), sourceField(f)+"="+c.String()
		for _, port := range []string{plan.PatchPort, "LOCAL"} {
			out = append(out, plan.Untranslated.Flow(bridge, ip+",in_port="+port+","+source))
		}
		if userspace {
			out = append(out, plan.UntranslatedStill.Flow(bridge, ip+","+source))
		}
	}
	return out
}

// Untranslated are the flows that drop them, for those who count.
func Untranslated(c *world.Config) []plan.Flow {
	var pods []netip.Prefix
	for _, s := range c.ClusterSubnets {
		pods = append(pods, s.CIDR)
	}
	return untranslatedFlows(c.Bridge, pods, c.UserspaceOVS)
}

// addInboundFlows are new connections from outside: those to the host's addresses are for the host, and so is what it
// is to forward to pods. To all others nobody listens; an egress IP above all is no address of the host, which would
// send the packet out again.
func (b flows) addInboundFlows(f world.Family, to []netip.Prefix) {
	if f == world.V6 {
		to = append(to, linkLocal())
	}
	for _, p := range to {
		b.addFlow(plan.HostNew, protocolKeyword(f)+",dl_dst="+b.mac+","+destinationField(f)+"="+p.String(), "LOCAL")
	}
}

// linkLocal is RFC 4291, 2.5.6.
func linkLocal() netip.Prefix { return netip.MustParsePrefix("fe80::/10") }

func hostPrefixes(f world.Family, addrs []netip.Addr) []netip.Prefix {
	var out []netip.Prefix
	for _, a := range f.OfAddrs(addrs) {
		out = append(out, world.Single(a))
	}
	return out
}

// established are the states of packets of connections that the bridge knows.
var established = [...]string{"+trk+est", "+trk+rel"}

// repliesToOVN and repliesToHost find the side that the connection is of.
func (b flows) repliesToOVN(ip string) {
	for _, state := range established {
		b.addFlow(plan.Established, ip+",ct_state="+state+","+plan.OfOVN(), "output:"+plan.PatchPort)
	}
}

func (b flows) repliesToHost(ip string) {
	for _, state := range established {
		b.addFlow(plan.Established, ip+",ct_state="+state+","+plan.OfHost(), "LOCAL")
	}
	b.addFlow(plan.Multicast, ip+","+forAll, "LOCAL")
}

func protocolKeyword(f world.Family) string { return [...]string{"ip", "ipv6"}[f] }
func sourceField(f world.Family) string     { return [...]string{"nw_src", "ipv6_src"}[f] }

func destinationField(f world.Family) string { return [...]string{"nw_dst", "ipv6_dst"}[f] }
