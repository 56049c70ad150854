package node

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/plane/listen"
	"github.com/egret-net/egret/internal/world"
)

// named says whether Kubernetes names a node for an address.
func named(w *world.World, self, egressIP string, ip netip.Addr) bool {
	e := w.EgressIP(egressIP)
	return e != nil && slices.Contains(e.Items, world.Assignment{Node: self, IP: ip})
}

// isThisHost says whether a hardware address is this host's own. Linux asks for neighbours with any of its addresses on any link (arp_announce 0), so
// that an egress IP of one link is heard from another.
func isThisHost(h *world.Host, mac string) bool {
	return h != nil && (h.UplinkMAC == mac || slices.ContainsFunc(h.Links, func(l world.Link) bool { return l.MAC == mac }))
}

// mayBeOurs says whether a claim may be a node's of the cluster. On secondary links nodes do not tell each other their hardware addresses.
func mayBeOurs(w *world.World, c listen.Claim) bool {
	if h := w.Host(); h != nil {
		if _, link := h.Home(c.IP); link != nil {
			return true
		}
	}
	return nodeAt(w, c.MAC) != ""
}

// nodeAt is the node of the cluster whose gateway router has a hardware address, or "".
func nodeAt(w *world.World, mac string) string {
	a, err := world.ParseHardwareAddr(mac)
	if err != nil {
		return ""
	}
	for _, name := range w.Nodes() {
		if n := w.Node(name); n.UplinkMAC == a {
			return name
		}
	}
	return ""
}
