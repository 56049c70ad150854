package holder

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

const (
	// sentALook bounds what is asked of the link while this node cannot be sure of what it holds, and what is announced
	// after another node was out of reach.
	sentALook = 100
	// unsureFor is how long a node that was cut off from all others is not sure: the API server's news come over
	// connections that were cut off as well, and TCP tries those again at growing distances.
	unsureFor = 15 * time.Second
)

// contact is this node's with other nodes.
type contact struct {
	alone    bool
	rejoined time.Time  // when one answered again; zero if that never was
	next     netip.Addr // the first to be probed

	missed    bool         // a node is back that may have missed announcements
	again     []netip.Addr // these are being announced for it, some in each look
	announced time.Time    // when the last such round began
}

// updateContact takes in whether other nodes answer, which is known as soon as the link is gone and as soon as it is
// back: others may have been given what this node holds, so it asks the link at once. An agent that stood still was cut
// off, too, and finds claims of then waiting for it.
func (m *Machine) updateContact() {
	stood := !m.stepped.IsZero() && m.now.Sub(m.stepped) > stoodStill
	m.stepped = m.now
	if stood || m.contact.alone && !m.facts.Alone {
		m.contact.rejoined = m.now
		m.probeHeld()
	}
	m.contact.alone = m.facts.Alone
	m.contact.missed = m.contact.missed || m.facts.Back
}

func (m *Machine) wasAlone() bool {
	r := m.contact.rejoined
	return m.contact.alone || !r.IsZero() && m.now.Sub(r) < unsureFor
}

// isNew says whether this node got the address after it was last alone. The assignment is then later than any news that
// it missed while alone. Where no node hosts addresses any more, BFD sessions end one by one, so that a node may seem
// alone that was not, and the next hand-over would end in yielding to the former holder.
func (m *Machine) isNew(a *address) bool {
	return !m.contact.alone && a.since.After(m.contact.rejoined)
}

// isUnsure says whether nobody would tell this node that an address is another's by now.
func (m *Machine) isUnsure() bool { return m.isAdopted() || m.facts.APISilent || m.wasAlone() }

// probeHeld asks for some of what is held, in turn.
func (m *Machine) probeHeld() {
	ips := slices.SortedFunc(maps.Keys(m.addresses), netip.Addr.Compare)
	from, _ := slices.BinarySearchFunc(ips, m.contact.next, netip.Addr.Compare)
	ips = slices.Concat(ips[from:], ips[:from])
	if len(ips) > sentALook {
		m.contact.next = ips[sentALook]
		ips = ips[:sentALook]
	}
	for _, ip := range ips {
		m.out.Probe = append(m.out.Probe, m.addresses[ip].Announcement)
	}
}

// announceHeld announces what is held to a node that was out of reach and answers again. If that node's agent is dead,
// its OVN answers for addresses that have moved here meanwhile until it receives that. A tunnel that comes and goes has
// them announced no more often than a conflict.
func (m *Machine) announceHeld() {
	c := &m.contact
	if c.missed && len(c.again) == 0 && m.now.Sub(c.announced) >= defendEvery {
		c.missed, c.announced = false, m.now
		c.again = slices.SortedFunc(maps.Keys(m.addresses), netip.Addr.Compare)
	}
	n := min(len(c.again), sentALook)
	for _, ip := range c.again[:n] {
		if a := m.addresses[ip]; a != nil && m.yields[a.egressAddress()] == nil {
			m.out.Announce = append(m.out.Announce, ip)
		}
	}
	c.again = c.again[n:]
}
