package holder

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

const (
	// lookEvery is how often the machine looks at what it holds though nothing has happened.
	lookEvery = time.Second
	// renewEvery is how often the ARP reply lease is renewed: a few times in the 20 s after which the switch answers
	// only for what nobody else announces.
	renewEvery = 5 * time.Second
	// stoodStill is after how long without a renewal the lease, which lasts for 20 s from when the switch was last
	// told, may have ended before this node's machine makes its next step.
	stoodStill = 3 * renewEvery
)

// Facts are what the machine is told. Holds, APISilent and Alone are so now; Back, Claims and Answers are news since
// the last step.
type Facts struct {
	View  *world.View
	Holds *Holds // another pointer where it has changed
	// Ahead are the nodes that this node's pods are led to and that have not said yet that they hold the address.
	Ahead map[world.EgressAddress]string
	// APISilent: the API server has been silent for so long that it counts as out of reach.
	APISilent bool
	// Alone: no other node answers.
	Alone bool
	// Back: a node that was down answers again.
	Back    bool
	Claims  []Claim
	Answers []Answer
	// NotSteered says why this node's own pods are not steered to an address that it is assigned; "" if they are.
	NotSteered func(world.EgressAddress) string
}

// Answer is the API server's about one EgressIP that Result.Ask names.
type Answer struct {
	Name     string
	EgressIP *world.EgressIP // nil without one
	Err      error           // no further answers come
	Last     bool
}

// Result is the outcome of a step.
type Result struct {
	Announce []netip.Addr        // again, and ask who else has them
	Probe    []plan.Announcement // ask who else has them
	Ask      []string            // EgressIPs, one after the other until there is an error: each answer is a fact
	Renew    bool                // the ARP reply lease
	Yields   map[world.EgressAddress]*world.Yield
	Overdue  map[world.EgressAddress]string // nodes that are not waited for any more; "" no longer is one that was
	Warnings []Warning
	Wake     time.Time // ask again then
}

// Warning is for people.
type Warning struct {
	Text string
	Args []any // in the form of slog
}

// Machine is one node's. The zero value holds nothing; Self must be set.
type Machine struct {
	Self string

	holds     *Holds
	addresses map[netip.Addr]*address
	yields    map[world.EgressAddress]*yield
	promises  map[world.EgressAddress]promise
	requests  requests
	contact   contact
	looked    time.Time
	renewed   time.Time
	stepped   time.Time

	// Of the step under way.
	facts Facts
	now   time.Time
	out   Result
}

// address is one that this node announces.
type address struct {
	Held
	since     time.Time         // when that began
	rivals    map[string]*rival // by hardware address: other machines that say they have it
	announced time.Time         // last, against rivals
	confirmed time.Time         // when the API server last said that it is this node's
	waiting   []string          // hardware addresses of machines whose claims wait for the API server's answer
	unsteered *unsteered        // nil while this node's own pods are steered to it
}

// Step takes in facts and returns the actions that follow.
func (m *Machine) Step(f Facts, now time.Time) Result {
	m.facts, m.now, m.out = f, now, Result{Yields: map[world.EgressAddress]*world.Yield{},
		Overdue: map[world.EgressAddress]string{}}
	m.updateHeld()
	m.updateContact()
	for _, x := range f.Answers {
		m.takeAnswer(x)
	}
	for _, c := range f.Claims {
		m.receiveClaim(c)
	}
	m.endYields()
	m.waitForHolders()
	look := !now.Before(m.looked.Add(lookEvery))
	if look {
		m.checkTime()
	}
	m.sendRequests(look)
	m.renewLease()
	m.out.Wake = m.nextWake()
	return m.out
}

// renewLease asks for the ARP reply lease, as soon as a plan is in place and then every few seconds. After a standstill
// it does so that much later: another node may have been given the addresses, and until the API server has said so this
// one must not answer beside it. An address that no other machine announces needs no lease.
func (m *Machine) renewLease() {
	switch since := m.now.Sub(m.renewed); {
	case since < renewEvery:
	case m.renewed.IsZero() || since < stoodStill:
		m.renewed, m.out.Renew = m.now, m.isPlanned()
	default:
		m.renewed = m.now
	}
}

// updateHeld takes in what is held where that has changed. An address that another node has released is announced
// again: some host outside may have received that node's announcement last.
func (m *Machine) updateHeld() {
	h := m.facts.Holds
	if h == nil || h == m.holds {
		return
	}
	now := make(map[netip.Addr]*address, len(h.Addresses))
	for ip, held := range h.Addresses {
		a := m.addresses[ip]
		if a == nil || a.EgressIP != held.EgressIP {
			a = &address{since: m.now}
		}
		a.Held, now[ip] = held, a
		if m.holds != nil && m.holds.Shared[ip] && !h.Shared[ip] {
			m.out.Announce = append(m.out.Announce, ip)
		}
	}
	if !m.isPlanned() && !h.Adopted {
		m.renewed = time.Time{} // its flows were written without the lease
	}
	m.addresses, m.holds = now, h
}

// checkTime does what follows from time alone.
func (m *Machine) checkTime() {
	m.looked = m.now
	for _, ip := range slices.SortedFunc(maps.Keys(m.addresses), netip.Addr.Compare) {
		a := m.addresses[ip]
		m.lookAtRivals(a)
		m.lookAtPods(a)
	}
	if m.isUnsure() {
		m.probeHeld()
	}
	if !m.wasAlone() && !m.isAdopted() {
		m.announceHeld()
	}
}

// nextWake is when something follows from time alone again.
func (m *Machine) nextWake() time.Time {
	wake := m.renewed.Add(renewEvery)
	sooner := func(t time.Time) {
		if t.Before(wake) {
			wake = t
		}
	}
	if len(m.addresses)+len(m.yields) > 0 {
		sooner(m.looked.Add(lookEvery))
	}
	if m.requests.isDue() {
		sooner(m.requests.at)
	}
	for _, y := range m.yields {
		if !y.ends.IsZero() {
			sooner(y.ends)
		}
	}
	for _, p := range m.promises {
		if !p.overdue {
			sooner(p.until)
		}
	}
	return wake
}

func (m *Machine) addWarning(text string, args ...any) {
	m.out.Warnings = append(m.out.Warnings, Warning{text, args})
}

func (m *Machine) isAdopted() bool { return m.holds != nil && m.holds.Adopted }

// isPlanned says whether what is held is what a plan wants, which knows the cluster.
func (m *Machine) isPlanned() bool { return m.holds != nil && !m.holds.Adopted }

// isAssignedHere says whether Kubernetes assigns an address to this node.
func (m *Machine) isAssignedHere(c world.EgressAddress) bool {
	e := m.facts.View.EgressIP(c.Object)
	return e != nil && slices.Contains(e.Items, world.Assignment{Node: m.Self, IP: c.IP})
}
