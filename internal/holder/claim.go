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
	// rivalsKept is how many machines are remembered that claim one address: a conflict is reported with one of them.
	rivalsKept = 16
)

// Claim is a machine's ARP packet or neighbor advertisement that says it has an address.
type Claim struct {
	IP  netip.Addr
	MAC string
}

// requests are those to the API server. One is under way at a time.
type requests struct {
	under bool
	at    time.Time // when to send the next one, if name is set
	name  string    // an EgressIP with a claim that waits for an answer
}

func (r requests) isDue() bool { return r.name != "" && !r.under }

// receiveClaim decides about a claim, or asks the API server first. There is nothing to ask where the status assigns
// the address to another node or the API server cannot be reached; nor where this node could not be reached, and
// another one of the cluster has the address now.
func (m *Machine) receiveClaim(c Claim) {
	a := m.addresses[c.IP]
	if a == nil || m.yields[a.egressAddress()] != nil || isThisHost(m.facts.View.Host(), c.MAC) {
		return
	}
	switch {
	case m.facts.APISilent, !m.isAdopted() && !m.isAssignedHere(a.egressAddress()):
		m.yieldAddress(a, c.MAC)
	case a.rivals[c.MAC] != nil:
		m.contendAddress(a, c.MAC)
	case m.wasAlone() && !m.isNew(a) && nodeAt(m.facts.View, c.MAC) != "":
		m.yieldAddress(a, c.MAC)
	case m.now.Sub(a.confirmed) < confirmedFor:
		m.contendAddress(a, c.MAC)
	case len(a.waiting) < rivalsKept && !slices.Contains(a.waiting, c.MAC):
		m.awaitAnswer(a, c)
	}
}

// awaitAnswer keeps a claim until the API server has answered. Its watch may bring the answer first, if the other
// machine is a node.
func (m *Machine) awaitAnswer(a *address, c Claim) {
	a.waiting = append(a.waiting, c.MAC)
	if m.requests.name == "" {
		m.requests.name, m.requests.at = a.EgressIP, m.now
		if mayBeNode(m.facts.View, c) {
			m.requests.at = m.now.Add(newsWait)
		}
	}
}

// sendRequests sends what is due to be asked: about one claim, which need not say more than that the API server is
// there, for then the watch brings the news; and, when it is time to look, about all that this node yields because it
// could not be asked.
func (m *Machine) sendRequests(look bool) {
	if m.requests.under {
		return
	}
	if m.requests.isDue() && !m.now.Before(m.requests.at) {
		m.out.Ask = append(m.out.Ask, m.requests.name)
	}
	if look {
		m.out.Ask = append(m.out.Ask, m.yieldedUnasked()...)
	}
	m.requests.under = len(m.out.Ask) > 0
}

// takeAnswer takes in an answer, or its absence.
func (m *Machine) takeAnswer(x Answer) {
	if x.Err == nil {
		m.resumeYielded(x.Name, x.EgressIP)
	}
	if x.Err == nil && !x.Last {
		return
	}
	m.requests = requests{}
	for _, a := range m.addresses {
		waiting := a.waiting
		a.waiting = nil
		for _, mac := range waiting {
			m.decideClaim(a, mac, x.Err == nil)
		}
	}
}

// decideClaim is about a claim that has waited for an answer.
func (m *Machine) decideClaim(a *address, mac string, answered bool) {
	switch {
	case m.yields[a.egressAddress()] != nil, m.isAdopted() && answered: // the cluster is about to be known
	case answered && m.isAssignedHere(a.egressAddress()):
		a.confirmed = m.now
		m.contendAddress(a, mac)
	default:
		m.yieldAddress(a, mac)
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
