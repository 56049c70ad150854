package holder

import (
	"cmp"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/world"
)

const (
	// defendEvery is DEFEND_INTERVAL of RFC 5227: a conflict that lasts is not fought over more often.
	defendEvery = 10 * time.Second
	// correctEvery is the same towards a node of the cluster, which yields: hosts outside must only receive the right
	// one last.
	correctEvery = time.Second
	// conflictFor is how long a claim counts after it was last received.
	conflictFor = 30 * time.Second
	// handover is how long another node of the cluster may go on answering before that is a conflict to report.
	handover = 4 * time.Second
)

// rival is a machine that says it has an address of this node. One with two links into a network answers from both.
type rival struct {
	node        string // of the cluster; "" if it is not known to be one
	mayBeNode   bool
	first, last time.Time
}

// pause returns how long passes at least between two defences against a rival, and between two questions about it.
func (r *rival) pause() time.Duration {
	if r.node != "" {
		return correctEvery
	}
	return defendEvery
}

// Conflict is an address that another machine says it has.
type Conflict struct {
	world.EgressAddress
	MAC string
}

// Conflicts are those to report, in order: of an address, the one with the first of its rivals, by hardware address.
func (m *Machine) Conflicts() []Conflict {
	var out []Conflict
	for _, a := range m.addresses {
		for mac, r := range a.rivals {
			if !r.mayBeNode || r.last.Sub(r.first) > handover {
				out = append(out, Conflict{a.egressAddress(), mac})
			}
		}
	}
	slices.SortFunc(out, func(a, b Conflict) int {
		return cmp.Or(a.EgressAddress.Compare(b.EgressAddress), cmp.Compare(a.MAC, b.MAC))
	})
	return slices.CompactFunc(out, func(a, b Conflict) bool { return a.EgressAddress == b.EgressAddress })
}

// contendAddress keeps the address and says so.
func (m *Machine) contendAddress(a *address, mac string) {
	r := a.rivals[mac]
	if r == nil {
		c := Claim{a.Announcement.IP, mac}
		r = &rival{node: nodeAt(m.facts.View, mac), mayBeNode: mayBeNode(m.facts.View, c), first: m.now}
		if len(a.rivals) < rivalsKept || r.node != "" {
			m.rememberRival(a, mac, r)
		}
	}
	r.last = m.now
	m.defendAddress(a, r)
}

func (m *Machine) rememberRival(a *address, mac string, r *rival) {
	if a.rivals == nil {
		a.rivals = map[string]*rival{}
	}
	a.rivals[mac] = r
	m.addWarning("another machine says that it has an egress IP of this node",
		"egressIP", a.EgressIP, "ip", a.Announcement.IP, "mac", mac, "node", r.node)
}

// endRivalry forgets a node of the cluster that had given way, as it claims the address again and the API server is
// asked: the address may have moved there. One that answers without its agent does so at once when it is asked, which
// each announcement does, or is silenced by that.
func (m *Machine) endRivalry(a *address, mac string) {
	r := a.rivals[mac]
	if r != nil && r.node != "" && a.announced.After(r.last) && m.now.Sub(a.announced) > silencedIn {
		delete(a.rivals, mac)
	}
}

// lookAtRivals ends conflicts of which nothing was received for long.
func (m *Machine) lookAtRivals(a *address) {
	for mac, r := range a.rivals {
		if m.now.Sub(r.last) > conflictFor {
			delete(a.rivals, mac)
			continue
		}
		m.defendAddress(a, r)
	}
}

// defendAddress announces the address again, not more often than is fair, and asks who else has it; towards a node of
// the cluster, once after the last claim.
func (m *Machine) defendAddress(a *address, r *rival) {
	if m.now.Sub(a.announced) < r.pause() || r.node != "" && a.announced.After(r.last) {
		return
	}
	a.announced = m.now
	m.out.Announce = append(m.out.Announce, a.Announcement.IP)
}
