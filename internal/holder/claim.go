package holder

import (
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/world"
)

const (
	// newsWait is how long the watch may take to bring what another node of the cluster knows already.
	newsWait = 200 * time.Millisecond
	// AskTimeout is how long the API server may take for one answer.
	AskTimeout = time.Second
	// confirmedFor is how long an answer of the API server stands for further claims to the same address: its watch
	// brings what changes.
	confirmedFor = time.Second
	// silencedIn is how long an announcement may take to silence OVN on a node with a dead agent, with the answers that
	// are under way.
	silencedIn = lookEvery / 2
	// rivalsKept is how many machines are remembered that claim one address: a conflict is reported with one of them.
	rivalsKept = 16
)

// Claim is a machine's ARP packet or neighbor advertisement that says it has an address.
type Claim struct {
	IP  netip.Addr
	MAC string
}

// requests are those to the API server. One list is under way at a time.
type requests struct {
	under bool
	at    time.Time // when to send the next one; zero: no claim waits to be asked about
}

func (r requests) isDue() bool { return !r.at.IsZero() && !r.under }

// receiveClaim decides about a claim, or asks the API server first. It does not ask where the status assigns the
// address to another node, or the API server cannot be reached. Nor does it where this node could not be reached, and
// another node claims the address now. It asks about a rival as often as it defends the address: the watch may stand
// still.
func (m *Machine) receiveClaim(c Claim) {
	a := m.addresses[c.IP]
	if a == nil || m.yields[a.egressAddress()] != nil || isThisHost(m.facts.View.Host(), c.MAC) {
		return
	}
	rival, since := a.rivals[c.MAC], m.now.Sub(a.confirmed)
	switch {
	case m.facts.APISilent && m.isDoubtful(a, rival):
		m.contendAddress(a, c.MAC)
	case m.facts.APISilent:
		m.yieldAddress(a, c.MAC, "the API server cannot be reached")
	case !m.isAdopted() && !m.isAssignedHere(a.egressAddress()):
		m.yieldAddress(a, c.MAC, "")
	case rival == nil && m.wasAlone() && !m.isNew(a) && nodeAt(m.facts.View, c.MAC) != "":
		m.yieldAddress(a, c.MAC, "this node could not be reached")
	case rival != nil && since < rival.pause(), since < confirmedFor:
		m.contendAddress(a, c.MAC)
	case len(a.waiting) < rivalsKept && !slices.Contains(a.waiting, c.MAC):
		m.endRivalry(a, c.MAC)
		m.awaitAnswer(a, c)
	}
}

// isDoubtful says whether a claim to an address of this node may be an answer of OVN on a node with a dead agent. An
// announcement silences that once its lease has ended. A living successor claims the address again. A node that may
// have missed a move, as one that was alone, does not announce.
func (m *Machine) isDoubtful(a *address, r *rival) bool {
	return !m.isAdopted() && !m.wasAlone() && m.isAssignedHere(a.egressAddress()) &&
		(r == nil || m.now.Sub(r.first) < silencedIn)
}

// awaitAnswer keeps a claim until the API server has answered. Its watch may bring the answer first, if the other
// machine is a node.
func (m *Machine) awaitAnswer(a *address, c Claim) {
	a.waiting = append(a.waiting, c.MAC)
	if m.requests.at.IsZero() {
		m.requests.at = m.now
		if mayBeNode(m.facts.View, c) {
			m.requests.at = m.now.Add(newsWait)
		}
	}
}

// sendRequests asks about each EgressIP with a claim that waits. When it is time to look it also asks about each one
// with an address that this node yields: the watch may be late.
func (m *Machine) sendRequests(look bool) {
	if m.requests.under {
		return
	}
	var names []string
	if m.requests.isDue() && !m.now.Before(m.requests.at) {
		m.requests.at = time.Time{}
		for _, a := range m.addresses {
			if len(a.waiting) > 0 {
				names = append(names, a.EgressIP)
			}
		}
	}
	if look {
		for c, y := range m.yields {
			if !y.agreed {
				names = append(names, c.Object)
			}
		}
	}
	slices.Sort(names)
	m.out.Ask = slices.Compact(names)
	m.requests.under = len(m.out.Ask) > 0
}

// takeAnswer takes in an answer, or its absence: then no further ones come.
func (m *Machine) takeAnswer(x Answer) {
	switch {
	case x.Err != nil:
		m.requests = requests{}
	case x.Last:
		m.requests.under = false
	}
	if x.Err == nil {
		m.settleYields(x.Name, x.EgressIP)
	}
	for _, a := range m.addresses {
		if x.Err == nil && a.EgressIP != x.Name {
			continue
		}
		waiting := a.waiting
		a.waiting = nil
		for _, mac := range waiting {
			m.decideClaim(a, mac, x)
		}
	}
}

// decideClaim is about a claim that has waited for an answer. A node keeps an address that both the API server and its
// own watch assign to it; the API server alone, until its first lists are there. One of them may be late: the watch, or
// the answer where the address has just come here. Without an answer the node does not yield to a known rival.
func (m *Machine) decideClaim(a *address, mac string, x Answer) {
	c := a.egressAddress()
	isOwn := func(e *world.EgressIP) bool {
		return e != nil && slices.Contains(e.Items, world.Assignment{Node: m.Self, IP: c.IP})
	}
	switch {
	case m.yields[c] != nil, m.isAdopted() && isOwn(x.EgressIP): // the cluster is about to be known
	case x.Err != nil && a.rivals[mac] == nil:
		m.yieldAddress(a, mac, "the API server cannot be reached")
	case x.Err == nil && !(isOwn(x.EgressIP) && m.isAssignedHere(c)):
		m.yieldAddress(a, mac, "the API server says that it is no longer this node's")
	default:
		if x.Err == nil {
			a.confirmed = m.now
		}
		m.contendAddress(a, mac)
	}
}

// isThisHost says whether a hardware address is this host's own. Linux asks for neighbours with any of its addresses
// on any link (arp_announce 0), so that an egress IP of one link is received from another.
func isThisHost(h *world.Host, mac string) bool {
	isOf := func(l world.Link) bool { return l.MAC == mac }
	return h != nil && (h.UplinkMAC == mac || slices.ContainsFunc(h.Links, isOf))
}

// mayBeNode says whether a claim may be a node's of the cluster. On secondary links nodes do not tell each other
// their hardware addresses.
func mayBeNode(w *world.View, c Claim) bool {
	_, link := w.Host().LinkFor(c.IP)
	return link != nil || nodeAt(w, c.MAC) != ""
}

// nodeAt is the node of the cluster whose gateway router has a hardware address, or "".
func nodeAt(w *world.View, mac string) string {
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
