package trace

import "net/netip"

// loopback is the link of what the host sends to itself.
const loopback = "lo"

// WalkFromHost sends a packet from a process of a node's host. Without a source it gets that of the link by which the
// host routes it.
func (c *Cluster) WalkFromHost(node string, p Packet) []End {
	w := c.startWalk(p)
	if w.node = node; w.ownZone() == nil {
		return w.endWith(Dropped, "no node %s", node)
	}
	if !p.Src.IsValid() {
		w.p.Src = p.Dst // of its family
		w = w.routeByRules()
		w.p.Src = w.linkAddress()
	}
	w.asked = netip.AddrPortFrom(w.p.Dst, w.p.DstPort)
	return w.addStep("from the host").passHook("output", func(w walker) []End {
		if w.isForHost() {
			w.oif = loopback
			return w.outOfHost()
		}
		return w.routeByRules().outOfHost()
	})
}

// WalkIntoHost sends a packet from outside to a node's host, by one of its links: "breth0" where the gateway bridge has
// given it to the host.
func (c *Cluster) WalkIntoHost(node, link string, p Packet) []End {
	w := c.startWalk(p)
	if w.node, w.iif = node, link; w.ownZone() == nil {
		return w.endWith(Dropped, "no node %s", node)
	}
	return w.addStep("in by %s", link).enterHost()
}
