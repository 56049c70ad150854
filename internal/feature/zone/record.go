package zone

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// recorder decides what is recorded about a node: the addresses that it is believed to have. An address that a node no
// longer has is kept until it has another one instead, and no other node gets it until then.
type recorder struct {
	w *world.View
	*taken
}

// record fills in the record of a node.
func (r recorder) record(n *world.Node, a *Allocation) {
	a.Record.MAC = r.recordedMAC(n)
	for _, f := range [...]world.Family{world.V4, world.V6} {
		if ip, is := r.recordedAddr(n, f, a); is {
			a.Record.Addrs = append(a.Record.Addrs, ip)
		}
	}
}

// recordedMAC is the hardware address to record; none where neither the node nor its record has one.
func (r recorder) recordedMAC(n *world.Node) world.HardwareAddr {
	if holder := r.macs.last(n.UplinkMAC); !n.UplinkMAC.IsValid() || holder != "" && holder != n.Name {
		return n.Record.MAC
	}
	return n.UplinkMAC
}

// recordedAddr is the address of a family to record, and whether there is one; why the node's own is not, goes to its
// problems.
func (r recorder) recordedAddr(n *world.Node, f world.Family, a *Allocation) (netip.Addr, bool) {
	old := f.OfAddrs(n.Record.Addrs)
	p, claims := f.Of(n.Primary)
	reason, why := "", ""
	if claims && !slices.Contains(old, p.Addr()) {
		reason, why = r.refusalReason(n, p)
	}
	switch {
	case why != "":
		a.refuseWith(decide.Finding{Reason: reason, IP: p.Addr()}, "address %s %s", p.Addr(), why)
	case claims:
		return p.Addr(), true
	}
	if len(old) == 0 {
		return netip.Addr{}, false
	}
	return old[0], true
}

// Reasons why an address is not recorded.
const (
	notAHosts  = "NotAHostsAddress"
	ofGateway  = "AddressOfGateway"
	ofNode     = "AddressOfNode"
	ofEgressIP = "AddressOfEgressIP"
	ofService  = "AddressOfService"
	elsewhere  = "OutsideKnownNetworks"
)

// refusalReason says why an address that a node names is not recorded, and what to do; "" if it is. The first address
// that a node is recorded with may be in any network, and one that a Service asks for: it is an address of the node
// then, and stays that. A node that is known can take neither an outside host's nor a Service's.
func (r recorder) refusalReason(n *world.Node, p netip.Prefix) (reason, why string) {
	const another = "give the node's primary network an address of its own"
	ip := p.Addr()
	if why := world.NotAHosts(p); why != "" {
		return notAHosts, why + ": " + another
	}
	if by := r.gateways.last(ip); by != "" {
		return ofGateway, fmt.Sprintf("is node %s's default gateway: %s", by, another)
	}
	switch holder := r.addrs.last(ip); {
	case holder != "":
		return ofNode, fmt.Sprintf("is recorded as node %s's: delete Node %s if it is gone, or %s", holder, holder,
			another)
	case r.w.Placed(ip):
		return ofEgressIP, "is an address of an EgressIP: take it out of the EgressIP, or " + another
	}
	if len(n.Record.Addrs) == 0 {
		return "", ""
	}
	if services := r.w.ServicesAt(ip); len(services) > 0 {
		return ofService, fmt.Sprintf("is an address of Service %s, which keeps it: take it out of the Service, or "+
			"give the node another", services[0])
	}
	return r.strayReason(n, p)
}
