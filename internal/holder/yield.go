package holder

import (
	"maps"
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
	to      string    // a node of the cluster, or ""
	unasked bool      // the API server could not be asked: it is for that to say whose the address is
	ends    time.Time // when draining does; where the API server could be asked, all of it. Zero: it is over
}

// yieldAddress stops answering. Where the status assigns the address to another node that is only until that one's
// report can be here: if none comes, the address is answered for again.
func (m *Machine) yieldAddress(a *address, mac string) {
	c, y := a.egressAddress(), &yield{to: nodeAt(m.facts.View, mac), ends: m.now.Add(DrainFor)}
	if y.unasked = m.isAdopted() || m.isAssignedHere(c); y.unasked {
		m.addWarning("yields an egress IP: another machine announces it, and the API server cannot be reached",
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
	if !y.unasked && !m.facts.APISilent && p != nil && p.Leaves(m.Self, c.IP) {
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
		case !y.unasked && m.isAssignedHere(c): // again: it leads nowhere before it translates
			m.takeBack(c)
		case y.ends.IsZero() || m.now.Before(y.ends):
		case y.unasked:
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

// yieldedUnasked are the EgressIPs of which this node yields an address because the API server could not be asked.
func (m *Machine) yieldedUnasked() []string {
	var names []string
	for _, c := range slices.SortedFunc(maps.Keys(m.yields), world.EgressAddress.Compare) {
		if m.yields[c].unasked && !slices.Contains(names[max(len(names)-1, 0):], c.Object) {
			names = append(names, c.Object)
		}
	}
	return names
}

// resumeYielded ends what was yielded of an EgressIP unasked, once the world says what the API server says of it, which
// is e.
func (m *Machine) resumeYielded(name string, e *world.EgressIP) {
	have := m.facts.View.EgressIP(name)
	if e != nil && (have == nil || !slices.Equal(have.Items, e.Items)) {
		return // the next answer finds that it has come
	}
	for c, y := range m.yields {
		if c.Object == name && y.unasked {
			m.takeBack(c)
		}
	}
}
