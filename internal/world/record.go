package world

import (
	"net/netip"
	"slices"
)

// Record is what the controller has accepted as a node's own, beside what it allocates. It is in Kubernetes, so that it
// outlives every program; no node can write it. Of several nodes that claim the same it says whose it is, and nothing
// waits for it: it is written when a node has joined.
type Record struct {
	// Addrs are addresses on the primary network, one a family, IPv4 first.
	Addrs []netip.Addr
	// MAC is the hardware address of the uplink; none: not recorded yet.
	MAC HardwareAddr
}

// Same compares two records.
func (r Record) Same(o Record) bool { return r.MAC == o.MAC && slices.Equal(r.Addrs, o.Addrs) }

// hasAsset says whether an asset is in the record.
func (r Record) hasAsset(a asset) bool {
	if a.mac.IsValid() {
		return r.MAC == a.mac
	}
	return a.prefix.IsSingleIP() && slices.Contains(r.Addrs, a.prefix.Addr())
}

// reservedAddresses are the addresses of a node's primary network that no Service gets. A node that has a record cannot
// take a Service's address by naming it: the controller does not record that. One that has none yet is new, or of a
// cluster whose controller keeps no records.
func (n *Node) reservedAddresses() []netip.Addr {
	addrs := n.primaryAddresses()
	if n == nil || len(n.Record.Addrs) == 0 {
		return addrs
	}
	return slices.DeleteFunc(addrs, func(a netip.Addr) bool { return !slices.Contains(n.Record.Addrs, a) })
}

// rankClaim orders the nodes that claim an asset, the lowest first: this node, for a node believes itself; then one
// that the controller has recorded with it.
func (w *World) rankClaim(name string, a asset) int {
	switch {
	case name == w.Self:
		return 0
	case w.said[name].Record.hasAsset(a):
		return 1
	}
	return 2
}
