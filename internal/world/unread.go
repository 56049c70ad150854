package world

// Unread says which of a node's annotations are there and cannot be read.
type Unread struct{ Chassis, Primary, HostAddrs, Gateway bool }

// orBefore is n with what was known of the same Node before in place of what cannot be read: its agent writes it anew
// within a second or two, and until then the host is as it was. Who starts meanwhile knows less, as of a node that is
// new.
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

// orBefore is e with the selector of traffic that the same object had before in place of one that cannot be read: what
// leaves with the right source goes on. Who has not seen that one does not know to which destinations the object serves
// its pods.
func (e *EgressIP) orBefore(old *EgressIP) *EgressIP {
	if !e.TrafficUnknown || old == nil || old.UID != e.UID || old.TrafficUnknown {
		return e
	}
	out := *e
	out.Traffic, out.TrafficUnknown = old.Traffic, false
	return &out
}
