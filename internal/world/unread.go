package world

// Unread says which of a node's annotations are there and cannot be read.
type Unread struct{ Chassis, Primary, HostAddrs, Gateway, ID, Subnets bool }

// orBefore returns n with the previous values of the same Node instead of unreadable ones: its agent or the controller
// writes them again within a second or two, and until then the node is unchanged. A program that starts in the meantime
// has no previous value, as for a new node.
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
	if n.Unread.ID && n.ID == 0 {
		out.ID = old.ID
	}
	if n.Unread.Subnets && len(old.Subnets) > 0 { // those that can be read may be a part of the node's
		out.Subnets, out.Further = old.Subnets, old.Further
	}
	if out.sameNode(n) {
		return n // a lookup by the object's own key succeeds
	}
	return &out
}

// orBefore returns e with the previous traffic selector of the same object instead of an unreadable one: traffic that
// leaves with the right source goes on. An agent that has not seen the previous one does not know to which destinations
// the object serves its pods: it began later, or its watch has listed since, so that a generation is missing.
func (e *EgressIP) orBefore(old *EgressIP) *EgressIP {
	if !e.TrafficUnknown || old == nil || old.UID != e.UID || old.TrafficUnknown || e.Generation > old.Generation+1 {
		return e
	}
	out := *e
	out.Traffic, out.TrafficUnknown = old.Traffic, false
	return &out
}
