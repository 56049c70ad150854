package gateway

import (
	"fmt"
	"net/netip"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Firewall is the host's own part: in local gateway mode it forwards and masquerades for this node's pods, and in every
// mode it lets no pod's address out, nor another node's pods through.
type Firewall struct{}

func (Firewall) Name() string    { return "gateway-firewall" }
func (Firewall) Per() world.Kind { return world.KindHost }

// Compile adds the chains.
func (Firewall) Compile(w *world.View, _ string, out *plan.Rows) {
	n, h := w.Node(w.Self), w.Host()
	if h == nil {
		return
	}
	if w.Config.UserspaceOVS {
		quietUplink(w.Config.UplinkInterface, out)
	}
	if n == nil || len(n.Subnets) == 0 {
		return
	}
	dev := plan.DefaultNames().ManagementPort()
	forward, nat := out.AddChain(plan.ChainForward), out.AddChain(plan.ChainPostrouting)
	noTunnels(forward, dev, w.Config.EncapPort, out)
	for _, s := range n.Subnets {
		for _, c := range w.Config.Cluster(world.FamilyOf(s.Addr())) {
			foreignPods(forward, dev, s, c, out)
			noConnection(forward, dev, c, out)
			addMasquerade(nat, dev, s, c, out)
			addInboundSNAT(nat, dev, s, c, out)
		}
		for _, c := range w.Config.ServiceSubnets {
			if world.FamilyOf(c.Addr()) == world.FamilyOf(s.Addr()) {
				addInboundSNAT(nat, dev, s, c, out)
			}
		}
	}
}

// foreignPods drops and counts what comes from the management port with another node's pod as source: it was steered
// here to be translated and was not. Masquerading would give it this node's address. Marked packets are for an egress
// IP on a link, and translated further on, or dropped there. Answers of a connection that the host sent to a pod are
// translated back.
func foreignPods(c plan.NFTChain, dev string, own, cluster netip.Prefix, out *plan.Rows) {
	ip := ipKeyword(own)
	text := "iifname %q ct direction original meta mark & %#x != %#x " +
		"%s saddr %s %s saddr != %s %s daddr != %s counter drop"
	addRule(c, plan.ForwardUntranslated+cluster.String(), fmt.Sprintf(text,
		dev, plan.MarkEgressMask, plan.MarkEgress, ip, cluster, ip, own, ip, cluster), out)
}

// noTunnels drops and counts what comes from the management port for the port of nodes' tunnels: masqueraded it would
// be this node's own packet to whom it is for.
func noTunnels(c plan.NFTChain, dev string, port int, out *plan.Rows) {
	addRule(c, "tunnels", fmt.Sprintf("iifname %q meta l4proto udp th dport %d counter drop", dev, port), out)
}

// noConnection drops and counts packets that a pod sends outside and that belong to no connection, as an RST after the
// connection has ended here. The kernel does not translate such packets, and they would leave with the pod's address.
// Answers of a connection that did not have to be translated go on.
func noConnection(c plan.NFTChain, dev string, cluster netip.Prefix, out *plan.Rows) {
	ip := ipKeyword(cluster)
	addRule(c, plan.ForwardUntranslated+"no connection "+cluster.String(), fmt.Sprintf(
		"iifname %q oifname != %q ct state { invalid, untracked } %s saddr %s %s daddr != %s counter drop",
		dev, dev, ip, cluster, ip, cluster), out)
}

// addMasquerade gives this node's pods the address of the interface they leave by, and a port of plan.PodPorts. Packets
// that the host sends to itself do not have the management port's address: on the loopback the kernel takes the first
// link's address.
func addMasquerade(c plan.NFTChain, dev string, own, cluster netip.Prefix, out *plan.Rows) {
	ip := ipKeyword(own)
	match := fmt.Sprintf("oifname != { %q, \"lo\" } %s saddr %s %s daddr != %s ", dev, ip, own, ip, cluster)
	addRule(c, "masquerade "+own.String(), transport+match+"masquerade to :"+plan.PodPorts, out)
	addRule(c, "masquerade "+own.String()+" without ports", match+"masquerade", out)
}

// transport matches protocols that have ports, and that the kernel translates.
const transport = "meta l4proto { tcp, udp, sctp } "

// addInboundSNAT gives what the host sends on to pods or Services (connections to a hostPort or a node port) the
// management port's address, or the pod's replies would leave by the gateway router, translated as a new connection's.
func addInboundSNAT(c plan.NFTChain, dev string, own, inside netip.Prefix, out *plan.Rows) {
	ip := ipKeyword(own)
	addRule(c, "inbound "+inside.String(), fmt.Sprintf("oifname %q %s saddr != %s %s daddr %s masquerade",
		dev, ip, world.Nth(own, 2), ip, inside), out)
}

func addRule(c plan.NFTChain, name, text string, out *plan.Rows) {
	plan.Add(&out.NFTRules, plan.NFTRule{Chain: c, Name: name}, text)
}

func ipKeyword(p netip.Prefix) string { return [...]string{"ip", "ip6"}[world.FamilyOf(p.Addr())] }

// quietUplink keeps the uplink's packets from the kernel where OVS reads them through a packet socket: it would answer
// for connections that are not its own, with RST. The socket sees them before the ingress hook does.
func quietUplink(uplink string, out *plan.Rows) {
	spec := plan.ChainUplink.Spec()
	spec.Device = uplink
	plan.Add(&out.NFTChains, plan.ChainUplink.ID(), spec)
}
