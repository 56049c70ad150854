package egressip

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/holder"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Hosts is what a holder has for an EgressIP, whoever its pods are.
type Hosts struct{}

func (Hosts) Name() string    { return "egressip" }
func (Hosts) Per() world.Kind { return world.KindEgressIP }

// Compile adds the translation to every address that this node hosts.
func (Hosts) Compile(w *world.View, key string, out *plan.Rows) {
	n, h, ok := w.Zone()
	e := w.EgressIP(key)
	if !ok || e == nil {
		return
	}
	if len(e.Items)+len(e.Leaving) == 0 {
		prepareHost(w, h, e, out)
	}
	for _, f := range w.Config.Families() {
		for _, d := range holder.Duties(w, key, f) {
			ip := d.IP
			primary, link := h.LinkFor(ip)
			if link != nil {
				hostOnLink(w, n, e, f, ip, link, !d.Answers, out)
			}
			if !primary {
				continue
			}
			out.AddSet(allPods.setName(e, f))
			addNAT(w, e, f, ip, out)
			addNetworksNAT(w, n, e, f, ip, out)
			tooBig(w, n, h, f, ip, out)
			egress.Forward(w, egressOf(e.Name, ip), h.UplinkMAC, out)
			if !d.Answers {
				muteGatewayRouter(w.Config, f, ip, out)
				continue
			}
			addLeaseFlows(w.Config, f, ip, h.UplinkMAC, out)
			announceAddress(e.Name, plan.Announcement{Dev: w.Config.Bridge, IP: ip, MAC: h.UplinkMAC}, out)
		}
	}
}

// prepareHost has the bridge's flows, and the kernel's routes for what they give it, ready on the nodes that a new
// EgressIP's addresses may be given to, so that the host has less to do between the status and the first packet. Where
// OVN does not translate to an address they do nothing. Rows with an effect wait for the status: the controller may
// refuse an address.
func prepareHost(w *world.View, h *world.Host, e *world.EgressIP, out *plan.Rows) {
	n := w.Node(w.Self)
	if _, labelled := n.Labels[world.AssignableLabel]; !labelled || !mayHost(e, n) {
		return
	}
	for _, f := range w.Config.Families() {
		for _, ip := range f.OfAddrs(e.IPs) {
			if primary, _ := h.LinkFor(ip); primary && !slices.Contains(h.Addrs, ip) {
				toHost(w, n, h, f, ip, out)
				addLeaseFlows(w.Config, f, ip, h.UplinkMAC, out)
			}
		}
	}
}

// addNAT is one NAT row a cluster subnet for any number of pods (NAT.match, OVN 24.03 and later). It comes before
// the node subnet's own row by its priority, and leaves what goes to nodes to that one.
func addNAT(w *world.View, e *world.EgressIP, f world.Family, ip netip.Addr, out *plan.Rows) {
	match := f.Match() + ".src == " + plan.InSet(allPods.setName(e, f)) + onlyTo(e, f) + " && " + notToNodes
	for _, c := range w.Config.Cluster(f) {
		id := natRow(e.Name, ip) + "/" + c.String()
		out.AddNB(plan.RowID{Table: "NAT", Name: id}, plan.Router(plan.DefaultNames().GatewayRouter(w.Self)), plan.Cols{
			"type": "snat", "external_ip": ip.String(), "logical_ip": c.String(), "match": match,
			"priority": natPriority,
		})
	}
	plan.Add(&out.Translated, egressOf(e.Name, ip), e.Since(world.Assignment{Node: w.Self, IP: ip}))
}

// notToNodes says, as cheaply as OVN can be asked, that a packet has not plan.MarkNodeIP, which Allow gives to what
// goes to nodes: one of the bits that make up that mark is missing. That is six flows at most, and the same whatever
// the nodes' addresses are: OVN 25.03's ovn-controller took 30 ms to expand "ip6.dst != $node_ips.v6" with 13 of them,
// for each row.
const notToNodes = "pkt.mark[4..9] != 63"

// natPriority is above what OVN 25.03 gives the node subnet's row by its prefix length.
const natPriority = 10

// muteGatewayRouter keeps a former holder's gateway router from answering for an address that another node answers for
// by now. It only translates what is still on its way here.
func muteGatewayRouter(c *world.Config, f world.Family, ip netip.Addr, out *plan.Rows) {
	for _, m := range [...][]string{
		{"arp,in_port={" + c.UplinkInterface + "},arp_tpa=", "arp,in_port=" + plan.PatchPort + ",arp_spa="},
		{
			"icmp6,icmp_type=135,in_port={" + c.UplinkInterface + "},nd_target=",
			"icmp6,icmp_type=136,in_port=" + plan.PatchPort + ",nd_target=",
		},
	}[f] {
		out.AddFlow(c.Bridge, plan.MuteAddress, m+ip.String(), "drop")
	}
}
