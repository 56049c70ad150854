package egressip

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/decide/patience"
	"github.com/egret-net/egret/internal/world"
)

// Decision is what the controller says about one EgressIP.
type Decision struct {
	UID string // of the object
	world.Placement
	Conditions []world.Condition // Assigned, Ready, InForce, Fallback; Since is zero where the status changed now
	Notices    []decide.Notice   // its faults
	Events     []decide.Event    // changes, and new faults
	Awaited    []string          // nodes that Ready waits for, and that do not say what keeps them
	Again      time.Time         // when to decide anew though nothing changes; zero: not
	WaitsFor   []string          // EgressIPs whose status still gives an address to a node, and must be written first
}

// Beside is what a decision is composed of beside the world.
type Beside struct {
	Served    *handover.Served    // the nodes of the pods that are served
	Patience  *patience.Patience  // how late nodes are
	Turns     *handover.Turns     // which nodes turned Ready or NotReady lately
	Exchanges Exchanges           // which EgressIPs have lost all that they had
	Shown     patience.Shown      // the EgressIPs' statuses
	Last      map[string]Decision // the decisions before this one, of the same term
	Now       time.Time
}

// assigner finds places for the addresses of all EgressIPs, and composes decisions about them. Its findings stand until
// renewed inputs contradict them.
type assigner struct {
	Beside
	world   *world.World
	w       *world.View // of world; reads of a decision about one object may be recorded
	pods    *podAddresses
	objects []*object // in order of precedence
	byName  map[string]*object
	parts   map[string]*part // by node
	hosts   []host
	nets    [2][]network // of hosts, by family
	named   named
	longest longest
	owner   map[netip.Addr]*object
	// addresses that the API shows with a node of another object than their owner, which has to be written first
	givenUp  map[netip.Addr]givenUp
	refused  map[netip.Addr]refusal // addresses that are somebody else's
	failed   patience.Failed
	unplaced map[string]struct{} // addresses without a node
}

// givenUp is whose status still gives an address to which node.
type givenUp struct{ egressIP, node string }

// giveUp finds the addresses that statuses which are still to be written give to nodes: their next owner has to wait,
// or two nodes would be named for one address, and neither would yield.
func (a *assigner) giveUp() {
	clear(a.givenUp)
	for _, o := range a.objects {
		for _, i := range o.shown {
			if owner := a.owner[i.IP]; owner != nil && owner != o && a.parts[i.Node] != nil {
				a.givenUp[i.IP] = givenUp{o.e.Name, i.Node}
			}
		}
	}
}

// object is one EgressIP on its way to a decision, with a place for each address of its spec.
type object struct {
	e        *world.EgressIP
	shown    []world.Assignment // by the status that the API shows
	reserved []refusal          // of each address: that nobody outside the cluster can answer to it; zero: somebody can
	places   []place
	before   []place  // of the last time
	waitsFor []string // whose status still gives an address to a node
}

// place is where an address is: the index of a host, and its node, or nowhere, and then why.
type place struct {
	ip        netip.Addr
	host      int
	node      string
	why       refusal
	conflicts bool   // it is another object's, or somebody else's
	doubt     string // about its network
}

// sameDecision says whether two places are for one decision. The same node may have become another host.
func (p place) sameDecision(o place) bool {
	p.host = o.host
	return p == o
}

const nowhere = -1

func newAssigner(w *world.World, pods *handover.Pods) *assigner {
	a := &assigner{world: w, w: &w.View, byName: map[string]*object{}, parts: map[string]*part{},
		named: newNamed(), owner: map[netip.Addr]*object{}, givenUp: map[netip.Addr]givenUp{},
		refused: map[netip.Addr]refusal{}, unplaced: map[string]struct{}{}}
	a.pods = newPodAddresses(pods, func(ip netip.Addr) bool { return a.owner[ip] != nil })
	return a
}

// placeAll finds a place for every address: those that can stay do, others go to the nodes with the fewest. It returns
// the objects of which a decision may be another one than that of the last time. With survey, nodes have changed.
func (a *assigner) placeAll(survey bool) (moved []*object) {
	if survey {
		a.surveyNodes()
	}
	a.failed = a.Patience.TooLate()
	a.clearLoads()
	clear(a.owner)
	for _, o := range a.objects {
		a.openObject(o)
	}
	a.refuseForeign()
	a.giveUp()
	for _, o := range a.objects {
		a.keepPlaced(o)
	}
	clear(a.unplaced)
	for _, o := range a.objects {
		a.placeMissing(o)
		for _, p := range o.places {
			if p.host == nowhere {
				a.unplaced[p.ip.String()] = struct{}{}
			}
		}
		if !slices.EqualFunc(o.places, o.before, place.sameDecision) {
			moved = append(moved, o)
		}
	}
	return moved
}

// openObject gives an object places for its addresses, nowhere yet. Of several objects with an address the oldest has
// it (4.1).
func (a *assigner) openObject(o *object) {
	o.places, o.before, o.waitsFor = o.before[:0], o.places, nil
	o.shown = a.Shown(o.e.Name).Items
	for _, ip := range o.e.IPs {
		o.places = append(o.places, place{ip: ip, host: nowhere, doubt: a.named.inDoubt(ip)})
		if a.owner[ip] == nil {
			a.owner[ip] = o
		}
	}
}

// clearLoads takes everything from the hosts.
func (a *assigner) clearLoads() {
	late := a.failed.Nodes()
	for i := range a.hosts {
		h := &a.hosts[i]
		h.load, h.late = 0, late[h.node.Name] && !h.away
	}
}

// keepPlaced refuses what cannot be placed, and leaves the other addresses where the status says they are, where that
// still works.
func (a *assigner) keepPlaced(o *object) {
	for i := range o.places {
		p := &o.places[i]
		if first := a.owner[p.ip]; first != o { // before what may change with that one's status
			p.why, p.conflicts = claimedBy(p.ip, first.e), true
			continue
		}
		if r, no := a.refused[p.ip]; no {
			p.why, p.conflicts = r, true
			continue
		}
		if h := a.staysAt(o, p.ip); h != nowhere && !a.hosts[h].away &&
			!(a.tooLate(o.e, p.ip, h) && a.onTime(o.e, p.ip)) {
			a.putOnHost(p, h)
		}
	}
}

// tooLate says whether a host has not held an address of an object for so long that another is to try.
func (a *assigner) tooLate(e *world.EgressIP, ip netip.Addr, h int) bool {
	return a.Patience.Of(e.Name, world.Assignment{Node: a.hosts[h].node.Name, IP: ip}) == patience.TooLate
}

// onTime says whether any host can take an address that was not too late with another.
func (a *assigner) onTime(e *world.EgressIP, ip netip.Addr) (any bool) {
	a.eachCandidate(e, ip, func(h int) { any = any || !a.hosts[h].late })
	return any
}

// staysAt is the host that the status names for an address, if it can go on with it, or nowhere.
func (a *assigner) staysAt(o *object, ip netip.Addr) int {
	h := a.formerHost(o.e, ip)
	if h == nowhere || !a.inNetwork(a.hosts[h].node, ip) || isUnselected(o.e, a.hosts[h].node) {
		return nowhere
	}
	if same, _ := o.hasAddressOn(h, world.FamilyOf(ip)); same {
		return nowhere
	}
	return h
}

// formerHost is the host that the status names for an address, or nowhere.
func (a *assigner) formerHost(e *world.EgressIP, ip netip.Addr) int {
	h, found := slices.BinarySearchFunc(a.hosts, e.Assignee(ip),
		func(h host, name string) int { return cmp.Compare(h.node.Name, name) })
	if !found {
		return nowhere
	}
	return h
}

// placeMissing places what has no place yet, the address with the fewest possible hosts first, so that no other takes
// its only one.
func (a *assigner) placeMissing(o *object) {
	var todo []*place
	for i := range o.places {
		if p := &o.places[i]; p.host == nowhere && p.why.event == "" {
			todo = append(todo, p)
		}
	}
	if len(todo) > 1 {
		slices.SortStableFunc(todo, func(x, y *place) int {
			return a.countPossibleHosts(o.e, x.ip) - a.countPossibleHosts(o.e, y.ip)
		})
	}
	for _, p := range todo {
		if h := a.hostFor(o, p.ip); h != nowhere && a.waitReason(o, p.ip).event == "" {
			a.putOnHost(p, h)
		}
	}
	// Why one is nowhere is said when all others have their places, as it will be when they only keep them.
	for _, p := range todo {
		if p.host == nowhere {
			a.explainUnplaced(o, p)
		}
	}
}

// hostFor is the host that an address without a place can go to, or nowhere.
func (a *assigner) hostFor(o *object, ip netip.Addr) int {
	if h := a.bestHost(o, ip); h != nowhere {
		return h
	}
	return a.staysAt(o, ip)
}

// waitReason says why an address that could have a host has none yet: another object's status, or a node, has to let go
// of it first.
func (a *assigner) waitReason(o *object, ip netip.Addr) refusal {
	if by, is := a.givenUp[ip]; is {
		return stillGivenBy(ip, by)
	}
	self := handover.Claimant{Key: o.e.Name, UID: o.e.UID, Made: o.e.Created}
	if h, is := handover.Standing(a.world, a.w, self, ip); is && !o.e.Keeps(ip) {
		return standingAt(ip, h)
	}
	return refusal{}
}

// explainUnplaced says why an address has no host.
func (a *assigner) explainUnplaced(o *object, p *place) {
	if a.hostFor(o, p.ip) == nowhere {
		p.why = a.unplacedRefusal(o.e, p.ip)
		return
	}
	p.why = a.waitReason(o, p.ip)
	if by, is := a.givenUp[p.ip]; is {
		o.waitsFor = append(o.waitsFor, by.egressIP)
	}
}

func (a *assigner) putOnHost(p *place, h int) {
	p.host, p.node = h, a.hosts[h].node.Name
	a.hosts[h].load++
}

// countPossibleHosts counts the hosts that an address can go to.
func (a *assigner) countPossibleHosts(e *world.EgressIP, ip netip.Addr) int {
	n := 0
	a.eachCandidate(e, ip, func(int) { n++ })
	return n
}

// bestHost is the host that an address goes to: of those that have no address of this object and family (4.2) one that
// was not too late with another, then one that has none of the other family either, then the one with the fewest
// addresses (4.4), then the first by name.
func (a *assigner) bestHost(o *object, ip netip.Addr) int {
	f := world.FamilyOf(ip)
	best, bestShared := nowhere, false
	a.eachCandidate(o.e, ip, func(h int) {
		if same, other := o.hasAddressOn(h, f); !same &&
			(best == nowhere || a.isBetterHost(h, other, best, bestShared)) {
			best, bestShared = h, other
		}
	})
	return best
}

func (a *assigner) isBetterHost(h int, shared bool, than int, thanShared bool) bool {
	if x, y := a.hosts[h].late, a.hosts[than].late; x != y {
		return !x
	}
	if shared != thanShared {
		return !shared
	}
	if x, y := a.hosts[h].load, a.hosts[than].load; x != y {
		return x < y
	}
	return h < than
}

// hasAddressOn says whether an object has an address of family f, or of the other one, on a host.
func (o *object) hasAddressOn(h int, f world.Family) (same, other bool) {
	for i := range o.places {
		if p := &o.places[i]; p.host == h {
			if world.FamilyOf(p.ip) == f {
				same = true
			} else {
				other = true
			}
		}
	}
	return same, other
}
