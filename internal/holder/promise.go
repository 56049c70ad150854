package holder

import (
	"time"

	"github.com/egret-net/egret/internal/world"
)

// promiseFor is how long this node leads its pods' packets to another that is assigned an address and does not say yet
// that it holds it. A healthy one does within some tens of milliseconds; of one that does not, or whose report does not
// come, the packets are lost meanwhile.
const promiseFor = time.Second

// promise is that of a node to hold an address which it is assigned for the first time.
type promise struct {
	node, uid string // of the object
	until     time.Time
	overdue   bool // time is over: the node is to say that it holds the address before anything is led there
}

// waitForHolders begins and ends to wait for nodes.
func (m *Machine) waitForHolders() {
	for c, node := range m.facts.Ahead {
		p, is := m.promises[c]
		switch uid := m.objectUID(c.Object); {
		case !is || p.node != node || p.uid != uid:
			if p.overdue { // another node's, or of a former object
				m.out.Overdue[c] = ""
			}
			m.notePromise(c, promise{node: node, uid: uid, until: m.now.Add(promiseFor)})
		case !p.overdue && !m.now.Before(p.until):
			p.overdue = true
			m.notePromise(c, p)
			m.out.Overdue[c] = node
		}
	}
	for c, p := range m.promises {
		if p.overdue && m.promiseStands(c, p) || !p.overdue && m.facts.Ahead[c] == p.node {
			continue
		}
		if delete(m.promises, c); p.overdue {
			m.out.Overdue[c] = ""
		}
	}
}

func (m *Machine) notePromise(c world.EgressAddress, p promise) {
	if m.promises == nil {
		m.promises = map[world.EgressAddress]promise{}
	}
	m.promises[c] = p
}

// promiseStands says whether a node that is overdue is still to hold the address, and does not say that it does.
func (m *Machine) promiseStands(c world.EgressAddress, p promise) bool {
	is := m.facts.View.PlacementOf(c.Object)
	return is != nil && m.objectUID(c.Object) == p.uid && is.Assignee(c.IP) == p.node &&
		!m.facts.View.Holds(p.node, c.Object, c.IP)
}

// objectUID returns the UID of an object by its key; "" if the object does not exist.
func (m *Machine) objectUID(object string) string {
	if s := m.facts.View.EgressService(object); s != nil {
		return s.UID
	}
	if e := m.facts.View.EgressIP(object); e != nil {
		return e.UID
	}
	return ""
}
