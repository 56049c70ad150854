package holder

import (
	"slices"
	"time"

	"github.com/egret-net/egret/internal/world"
)

// DrainFor is how long an address is translated that this node yields: other nodes need a moment to learn of the other
// holder, and OVS replaces cached flows one by one. While the API server can be reached, the EgressIP's
// status.leaving says how long.
const DrainFor = 2 * time.Second

// yield is an address that this node has stopped answering for, because another machine does.
type yield struct {
	to        string    // a node of the cluster, or ""
	unsettled bool      // the watch's word is not enough to answer for the address again
	agreed    bool      // the API server has said the same as the watch
	ends      time.Time // when draining does; of what is settled, all of it. Zero: it is over
}

// yieldAddress stops answering, and warns why if the watch does not say so. Where the status assigns the address to
// another node that is only until that one's report can be here: if none comes, the address is answered for again.
func (m *Machine) yieldAddress(a *address, mac, why string) {
	c, y := a.egressAddress(), &yield{to: nodeAt(m.facts.View, mac), ends: m.now.Add(DrainFor)}
	if y.unsettled = m.isAdopted() || m.isAssignedHere(c); y.unsettled {
		m.addWarning("yields an egress IP: another machine announces it, and "+why,
			"egressIP", c.Object, "ip", c.IP, "mac", mac, "node", y.to)
	}
	a.rivals, a.waiting = nil, nil
	if m.yields == nil {
		m.yields = map[world.EgressAddress]*yield{}
	}
	m.yields[c] = y
	m.out.Yields[c] = &world.Yield{To: m.leadsTo(c, y), Draining: true}
}

// leadsTo is the node that this one's own pods are led to while it yields. One that leaves goes on translating: its
// pods stay with it until the successor says that it holds the address, as those of other nodes do. An announcement
// does not say so: older agents announce an address 2 s after they have written it, whether or not OVS has the flows.
// Where the API server is silent no report comes.
func (m *Machine) leadsTo(c world.EgressAddress, y *yield) string {
	p := m.facts.View.PlacementOf(c.Object)
	if !y.unsettled && !m.facts.APISilent && p != nil && p.Leaves(m.Self, c.IP) {
		return m.Self
	}
	return y.to
}

// endYields ends draining, and the yields to nodes that the status names, when their reports should be here by now or
// the status assigns the address to this node again. They go on while such a node that does not answer this one says
// that it holds the address: the link may carry its claims still.
func (m *Machine) endYields() {
	for c, y := range m.yields {
		switch {
		case !y.unsettled && m.isAssignedHere(c): // again: it leads nowhere before it translates
			m.takeBack(c)
		case y.ends.IsZero() || m.now.Before(y.ends):
		case y.unsettled:
			y.ends = time.Time{}
			m.out.Yields[c] = &world.Yield{To: y.to}
		case heldOutOfReach(m.facts.View, m.Self, c):
			y.ends = m.now.Add(DrainFor)
		default:
			m.takeBack(c)
		}
	}
}

func (m *Machine) takeBack(c world.EgressAddress) {
	delete(m.yields, c)
	m.out.Yields[c] = nil
}

// heldOutOfReach says whether another node that is assigned an address holds it and is not alive as far as this one can
// tell.
func heldOutOfReach(w *world.View, self string, c world.EgressAddress) bool {
	e := w.EgressIP(c.Object)
	return e != nil && slices.ContainsFunc(e.Items, func(a world.Assignment) bool {
		return a.IP == c.IP && a.Node != self && w.Holds(a.Node, c.Object, c.IP) && !w.Alive(a.Node)
	})
}

// settleYields settles what this node yields of an EgressIP if the watch says what the API server says of it, which is
// e. While it does not, another node may have been given the address, whether or not this one is assigned it.
func (m *Machine) settleYields(name string, e *world.EgressIP) {
	have := m.facts.View.EgressIP(name)
	agree := (have == nil) == (e == nil) && (e == nil || slices.Equal(have.Items, e.Items))
	for c, y := range m.yields {
		if c.Object != name {
			continue
		}
		if y.unsettled, y.agreed = !agree, agree; agree && y.ends.IsZero() {
			y.ends = m.now
		}
	}
}
