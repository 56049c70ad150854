package world

// Unread says which of a node's annotations are there and cannot be read.
type Unread struct{ Chassis, Primary, HostAddrs, Gateway bool }

// orBefore is n with what was known of the same Node before in place of what cannot be read: its agent writes it anew within a second or two, and until
// then the host is as it was. Who starts meanwhile knows less, as of a node that is new.
func (n *Node) orBefore(old *Node) *Node {
	if old == nil || old.UID != n.UID || n.Unread == (Unread{}) {
		return n
	}
	out := *n
	if n.Unread.Chassis && n.ChassisID == "" {
		out.ChassisID = old.ChassisID
	}
	if n.Unread.Primary && len(n.Primary) == 0 {
		out.Primary = old.Primary
	}
	if n.Unread.HostAddrs && len(n.CIDRs) == 0 {
		out.HostAddrs, out.CIDRs = old.HostAddrs, old.CIDRs
	}
	if n.Unread.Gateway && len(n.Gateways) == 0 {
		out.Gateways = old.Gateways
	}
	if n.Unread.Gateway && !n.UplinkMAC.IsValid() {
		out.UplinkMAC = old.UplinkMAC
	}
	if out.same(n) {
		return n // who looks for its own object finds it
	}
	return &out
}
