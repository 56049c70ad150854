package world

import (
	"maps"
	"net/netip"
	"slices"
)

// As is the world as another node's agent sees it, as far as this one can know: with what that node reports in place of
// what it knows of itself, and the host that its Node tells of. It is good for reading, and for what SetOverdue notes,
// until this world changes.
func (w *World) As(node string) *World {
	t := *w.tables
	t.own, t.yielded, t.tunnels, t.host, t.followers = nil, nil, nil, nil, nil
	t.overdue = map[EgressAddress]string{}
	t.kinds, t.sources = maps.Clone(t.kinds), map[Entry]*source{}
	as := &World{View{Self: node, Config: w.Config, tables: &t}}
	keepAttachments(as)
	as.keepDerivedTables()
	if n := w.nodes[node]; n != nil && n.UplinkMAC != (HardwareAddr{}) { // else its agent has yet to publish its host
		t.host = n.hostFacts(w.hostMTU())
	}
	for key, p := range w.pods {
		if p.Node == node && !p.HostNetwork && !p.Completed && len(p.IPs) > 0 {
			t.attachments[key] = &Attachment{Namespace: p.Namespace, Name: p.Name, UID: p.UID, MAC: MAC(p.IPs[0]),
				IPs: p.IPs, Further: p.Further}
		}
	}
	return as
}

// hostMTU is the MTU of this node's host, which another's is taken to have; where that is not known, Ethernet's.
func (w *World) hostMTU() int {
	if w.host == nil {
		return 1500
	}
	return w.host.MTU
}

// firstLink is the index of the first of a host's links that are not known.
const firstLink = 1000

// hostFacts is what a Node tells of its host. Which link has which address it does not tell: each network has one.
func (n *Node) hostFacts(mtu int) *Host {
	h := &Host{
		UplinkMAC: n.UplinkMAC.String(), Primary: n.Primary, Uplink: n.Primary, Addrs: n.HostAddrs,
		Gateways: n.Gateways, MTU: mtu,
	}
	byNetwork := map[netip.Prefix][]netip.Prefix{}
	for _, p := range n.CIDRs {
		if hasHostRoom(p) && !slices.Contains(n.Primary, p) {
			byNetwork[p.Masked()] = append(byNetwork[p.Masked()], p)
		}
	}
	for i, network := range slices.SortedFunc(maps.Keys(byNetwork), netip.Prefix.Compare) {
		link := Link{Name: "link-in-" + network.String(), Index: firstLink + i, Addrs: byNetwork[network]}
		h.Links = append(h.Links, link)
	}
	return h
}
