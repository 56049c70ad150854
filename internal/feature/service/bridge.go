package service

import (
	"fmt"
	"net/netip"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Bridge is what the uplink's bridge does with new connections from outside to a Service: to the gateway router's load
// balancers in shared gateway mode, to the host in local mode and where this very host is the endpoint. Those that are
// there already are told by their ct_mark.
type Bridge struct{}

func (Bridge) Name() string    { return "service-bridge" }
func (Bridge) Per() world.Kind { return world.KindService }

// Compile adds a flow an address and port; a few more where only some clients may come in, or this host is one of
// several endpoints.
func (Bridge) Compile(w *world.View, key string, out *plan.Rows) {
	s, h := w.Service(key), w.Host()
	if s == nil || h == nil || h.UplinkMAC == "" {
		return
	}
	b := bridge{w: w, s: s, h: h, out: out}
	for _, p := range s.Ports {
		for _, f := range w.Config.Families() {
			b.addFragmentFlows(p, f)
			if byHost(w, s) {
				b.addLocalFlows(p, f)
			} else {
				b.addExactFlows(p, f)
			}
		}
	}
}

type bridge struct {
	w   *world.View
	s   *world.Service
	h   *world.Host
	out *plan.Rows
}

// addExactFlows is for exact addresses, never for a bare port, which a reply to an egress IP may carry.
func (b bridge) addExactFlows(p world.ServicePort, f world.Family) {
	to := FromOutside(b.w, b.s, p, f)
	for _, ip := range f.OfAddrs(External(b.w, b.s, p)) {
		b.addDelivery(f, destination{p.Protocol, ip, p.Port}, to)
	}
	if !HasNodePort(b.w, b.s, p) {
		return
	}
	for _, ip := range f.OfAddrs(b.h.Addrs) {
		b.addDelivery(f, destination{p.Protocol, ip, p.NodePort}, to)
	}
}

// addFragmentFlows of a datagram have no port here, see inFragments, and in IPv6 all but the first have no protocol.
// Those for the node's addresses go to the host as all that no Service has.
func (b bridge) addFragmentFlows(p world.ServicePort, f world.Family) {
	if !inFragments(b.w, p) {
		return
	}
	for _, ip := range f.OfAddrs(External(b.w, b.s, p)) {
		b.addFlow(plan.ServiceFragment, fmt.Sprintf("%s,dl_dst=%s,%s=%s,nw_frag=yes", [...]string{"ip", "ipv6"}[f],
			b.h.UplinkMAC, [...]string{"nw_dst", "ipv6_dst"}[f], ip), "LOCAL")
	}
}

// addLocalFlows has nothing to add for the host's own addresses: feature gateway gives the host what comes for them.
func (b bridge) addLocalFlows(p world.ServicePort, f world.Family) {
	for _, ip := range f.OfAddrs(External(b.w, b.s, p)) {
		d := destination{p.Protocol, ip, p.Port}
		for _, match := range b.admittedMatches(f, d) {
			b.addFlow(plan.ServiceNew, match, plan.ToHost())
		}
	}
}

type destination struct {
	protocol string
	ip       netip.Addr
	port     uint16
}

func (b bridge) matchDestination(f world.Family, d destination) string {
	return fmt.Sprintf("%s%s,dl_dst=%s,%s=%s,tp_dst=%d", d.protocol, [...]string{"", "6"}[f], b.h.UplinkMAC,
		[...]string{"nw_dst", "ipv6_dst"}[f], d.ip, d.port)
}

// admittedMatches are the matches of those who may come in: all, but for a load balancer's address that is for some
// clients only.
func (b bridge) admittedMatches(f world.Family, d destination) []string {
	match := b.matchDestination(f, d)
	if !forSome(b.s, d.ip) {
		return []string{match}
	}
	b.addFlow(plan.ServiceRefused, match, "drop") // also where the host has the address
	var out []string
	for _, r := range allowedClients(b.s, f) {
		out = append(out, match+","+[...]string{"nw_src", "ipv6_src"}[f]+"="+r.String())
	}
	return out
}

// addDelivery sends connections to the host, to the gateway router, or to either by lot. The host can choose among all
// endpoints, but not send a client's own address to a pod: the answer would leave by the gateway router.
func (b bridge) addDelivery(f world.Family, d destination, to Inbound) {
	actions, drawn := plan.ToOVN(), false
	switch {
	case len(to.Host) > 0 && len(to.Gateway) > 0 && b.s.ExternalLocal:
		actions, drawn = b.drawEndpoint(b.matchDestination(f, d), to), true
	case len(to.Host) > 0:
		actions = plan.ToHost()
	}
	for _, match := range b.admittedMatches(f, d) {
		b.addFlow(plan.ServiceNew, match, actions)
		if d.protocol == "udp" && !drawn {
			// Above what tells connections by ct_mark: a client of UDP that goes on sending from one port has the
			// same connection for ever, and would stay with the host when the endpoints there are gone, or with the
			// gateway router.
			b.addFlow(plan.ServiceDatagrams, match+",ct_state=+trk+est-rpl", actions)
		}
	}
}

// drawEndpoint draws an endpoint's number, which is in reg0 then, by the connection, or with affinity by the client, so
// that each has the same share. The first numbers are this host's own endpoints.
func (b bridge) drawEndpoint(match string, to Inbound) (draw string) {
	for i := range to.Host {
		b.addFlow(plan.DrawnHere, fmt.Sprintf("%s,reg0=%d", match, i), plan.ToHost())
	}
	b.addFlow(plan.DrawnElsewhere, match, plan.ToOVN())
	by := "symmetric_l3l4+udp"
	if b.s.Affinity > 0 {
		by = "nw_src"
	}
	return fmt.Sprintf("multipath(%s,0,modulo_n,%d,0,NXM_NX_REG0[0..15]),resubmit(,%d)",
		by, len(to.Host)+len(to.Gateway), plan.DrawnHere.Table())
}

func (b bridge) addFlow(at plan.Stage, match, actions string) {
	b.out.AddFlow(b.w.Config.Bridge, at, match, actions)
}
