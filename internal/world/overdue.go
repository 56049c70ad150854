package world

// Overdue is how long a node has not held an egress IP that it is assigned, as the controller's clock says.
type Overdue uint8

const (
	// OnTime: it holds the address, or has not had it for long.
	OnTime Overdue = iota
	// Late: longer than a healthy node takes.
	Late
	// TooLate: another node is to try.
	TooLate
)

// placement is an address of an EgressIP on a node.
type placement struct {
	address EgressAddress
	node    string
}

// lateness is how late a node is, and why.
type lateness struct {
	how Overdue
	why string
}

// Overdue is how late a node is with an address of an EgressIP. Only the controller knows of any.
func (w *View) Overdue(node string, c EgressAddress) Overdue {
	w.saw(KindHolders, c.EgressIP)
	return w.overdue[placement{c, node}].how
}

// SetOverdue replaces how late a node is, and why by its own word; "" if it says nothing.
func (w *World) SetOverdue(node string, c EgressAddress, o Overdue, why string) []Touch {
	p := placement{c, node}
	if w.overdue[p] == (lateness{o, why}) {
		return nil
	}
	if w.overdue[p] = (lateness{o, why}); o == OnTime {
		delete(w.overdue, p)
	}
	return []Touch{{KindHolders, c.EgressIP}}
}

// steering is a node's of the pods of an EgressIP that run there.
type steering struct {
	node, egressIP string
}

// Unconfirmed says whether a node is no longer waited for to confirm that it steers pods of an EgressIP. Only the controller knows of any.
func (w *View) Unconfirmed(node, egressIP string) bool {
	w.saw(KindSteering, egressIP)
	return w.unconfirmed[steering{node, egressIP}]
}

// SetUnconfirmed replaces that.
func (w *World) SetUnconfirmed(node, egressIP string, is bool) []Touch {
	s := steering{node, egressIP}
	if w.unconfirmed[s] == is {
		return nil
	}
	if w.unconfirmed[s] = is; !is {
		delete(w.unconfirmed, s)
	}
	return []Touch{{KindSteering, egressIP}}
}

// TooLate are the nodes that are too late, by the address that they are too late with, and what they said of it then ("": nothing). It does not record.
func (w *World) TooLate() map[EgressAddress]map[string]string {
	out := map[EgressAddress]map[string]string{}
	for p, o := range w.overdue {
		if o.how != TooLate {
			continue
		}
		if out[p.address] == nil {
			out[p.address] = map[string]string{}
		}
		out[p.address][p.node] = o.why
	}
	return out
}
