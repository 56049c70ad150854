package egressip

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// AssignableLabel on a node, with any value, lets it host egress IPs.
const AssignableLabel = world.AssignableLabel

// Decision is what the controller says about one EgressIP.
type Decision struct {
	Items      []world.Assignment // in the order of the spec
	Leaving    []world.Leaving    // former holders that go on translating
	InForce    [2]bool            // by world.Family
	Conditions []world.Condition  // Assigned, Ready, InForce, Fallback; Since is zero where the status changed now
	Events     []decide.Event     // what became different from what the object says
	Awaited    []string           // nodes that Ready waits for, and that do not say what keeps them
	Again      time.Time          // when to decide anew though nothing changes; zero: not
	WaitsFor   []string           // EgressIPs whose status still gives an address to a node, and is to be written first
}

// Written is an EgressIP, by name, as the API last showed it. There is one for each of the world's.
type Written func(name string) *world.EgressIP

// Assign decides for every EgressIP which node hosts which of its addresses (seed egress-ip-original-proposal.md 4.1-4.6). It is
// sticky: an address stays where the object's status says it is while that node can host it. The same world has the same answer,
// and a world that says what was decided has no events. Served are the nodes of the pods that are served. Written are the EgressIPs as the API shows them, where
// the world has what was decided: it tells what nodes can know by now.
func Assign(w *world.World, served *Served, written Written, now time.Time) map[string]Decision {
	a := newAssigner(w)
	a.served, a.written, a.now = served, written, now
	a.forbid()
	a.giveUp()
	for _, o := range a.objects {
		a.keep(o)
	}
	out := make(map[string]Decision, len(a.objects))
	for _, o := range a.objects {
		a.complete(o)
		out[o.e.Name] = a.decide(o)
	}
	return out
}

// assigner is one run of Assign.
type assigner struct {
	w       *world.World
	served  *Served
	written Written
	now     time.Time
	names   []string // of all nodes
	objects []*object
	hosts   []host
	nets    [2][]network       // of hosts, by family
	subnets map[string]subnets // by node
	named   named
	longest longest
	owner   map[netip.Addr]*world.EgressIP
	givenUp map[netip.Addr]givenUp // addresses that the API shows with a node of another object than their owner, which has to be written first
	refused map[netip.Addr]refusal // addresses that are somebody else's
	doubted map[netip.Addr]refusal // addresses that somebody else says are theirs, refused where no node has them
	holders map[claim][]string
	late    map[string]bool                           // nodes that were too late with an address
	failed  map[world.EgressAddress]map[string]string // those, by address, and what they said of it
}

// host is a node that can take egress IPs now, and how many it has; or one whose agent is away. That one takes none, but goes on translating as it did: what
// no other can take stays there.
type host struct {
	node *world.Node
	load int
	away bool
	late bool // it was too late with an address: it is given nothing that another can take
}

// network is a subnet that hosts have an address in, with those hosts by index.
type network struct {
	cidr  netip.Prefix
	hosts []int
}

// claim is an address of one object.
type claim struct {
	egressIP string
	ip       netip.Addr
}

// givenUp is whose status still gives an address to which node.
type givenUp struct{ egressIP, node string }

// giveUp finds the addresses that statuses which are still to be written give to nodes: their next owner has to wait, or two nodes would be named for one
// address, and neither would give way.
func (a *assigner) giveUp() {
	a.givenUp = map[netip.Addr]givenUp{}
	for _, o := range a.objects {
		for _, i := range a.written(o.e.Name).Items {
			if owner := a.owner[i.IP]; owner != nil && owner != o.e && a.w.Node(i.Node) != nil {
				a.givenUp[i.IP] = givenUp{o.e.Name, i.Node}
			}
		}
	}
}

// object is one EgressIP on its way to a decision, with a place for each address of its spec.
type object struct {
	e        *world.EgressIP
	places   []place
	waitsFor []string // whose status still gives an address to a node
}

// place is where an address is: the index of a host, or nowhere, and then why.
type place struct {
	ip   netip.Addr
	host int
	why  refusal
}

const nowhere = -1

func newAssigner(w *world.World) *assigner {
	a := &assigner{w: w, owner: map[netip.Addr]*world.EgressIP{}, refused: map[netip.Addr]refusal{}, doubted: map[netip.Addr]refusal{}, holders: map[claim][]string{}, subnets: map[string]subnets{}, named: named{map[netip.Prefix]naming{}, map[netip.Prefix]naming{}}, names: w.Nodes(), late: map[string]bool{}, failed: w.TooLate()}
	for _, nodes := range a.failed {
		for node := range nodes {
			a.late[node] = true
		}
	}
	for e := range w.EachEgressIP() {
		o := &object{e: e, places: make([]place, len(e.IPs))}
		for i, ip := range e.IPs {
			o.places[i] = place{ip: ip, host: nowhere}
			if _, taken := a.owner[ip]; !taken { // 4.1: the older object has it
				a.owner[ip] = e
			}
		}
		a.objects = append(a.objects, o)
	}
	for _, name := range a.names {
		n := w.Node(name)
		a.addHolder(n)
		a.addSubnets(n)
		switch a.unfit(n) {
		case "":
			a.addHost(n)
		case CauseAgentAway:
			a.hosts = append(a.hosts, host{node: n, away: true})
		}
	}
	a.longest.primary, a.longest.secondary = a.named.settle()
	return a
}

// addHolder notes what a node says it holds; after a reboot that counts for nothing.
func (a *assigner) addHolder(n *world.Node) {
	h := a.w.Holding(n.Name)
	if h == nil || h.BootID != n.BootID {
		return
	}
	for name, ips := range h.Holds {
		for _, ip := range ips {
			a.holders[claim{name, ip}] = append(a.holders[claim{name, ip}], n.Name)
		}
	}
}

func (a *assigner) addHost(n *world.Node) {
	a.hosts = append(a.hosts, host{node: n, late: a.late[n.Name]})
	for _, p := range a.subnets[n.Name].all {
		nets := &a.nets[world.FamilyOf(p.Addr())]
		at := slices.IndexFunc(*nets, func(o network) bool { return o.cidr == p })
		if at < 0 {
			at = len(*nets)
			*nets = append(*nets, network{cidr: p})
		}
		if h := len(a.hosts) - 1; !slices.Contains((*nets)[at].hosts, h) {
			(*nets)[at].hosts = append((*nets)[at].hosts, h)
		}
	}
}

// Why a node does not host an address, or does so no longer.
const (
	CauseUnlabelled  = "NodeUnlabelled"
	CauseDeleting    = "NodeDeleting"
	CauseDeleted     = "NodeDeleted"
	CauseNotReady    = "NodeNotReady"
	CauseNotSetUp    = "NodeNotSetUp"
	CauseUnreachable = string(world.NodeUnreachable)
	CauseAgentAway   = string(world.AgentAway)
	CauseNetwork     = "NotInNetwork"
	CauseLink        = "LinkFault"
	CauseSpec        = "SpecChanged"
	CauseCordoned    = "NodeCordoned"
	CauseNotHeld     = "NotHeld"
)

// unfit says why a node takes no egress IP now, or "".
func (a *assigner) unfit(n *world.Node) string {
	_, labelled := n.Labels[AssignableLabel]
	switch {
	case !labelled:
		return CauseUnlabelled
	case n.Deleting:
		return CauseDeleting
	case n.Cordoned:
		return CauseCordoned
	case !n.Ready:
		return CauseNotReady
	case n.ID == 0 || n.ChassisID == "" || len(n.Primary) == 0:
		return CauseNotSetUp
	}
	return string(a.w.Unreachable(n.Name))
}

// keep refuses what cannot be placed, and leaves the other addresses where the status says they are, where that still works.
func (a *assigner) keep(o *object) {
	for i := range o.places {
		p := &o.places[i]
		if first := a.owner[p.ip]; first != o.e { // before what may change with that one's status
			p.why = claimedBy(p.ip, first)
			continue
		}
		if r, no := a.refused[p.ip]; no {
			p.why = r
			continue
		}
		if h := a.staysAt(o, p.ip); h != nowhere && !a.hosts[h].away && !(a.tooLate(o.e, p.ip, h) && a.onTime(p.ip)) {
			a.put(p, h)
		}
	}
}

// tooLate says whether a host has not held an address of an object for so long that another is to try.
func (a *assigner) tooLate(e *world.EgressIP, ip netip.Addr, h int) bool {
	return a.w.Overdue(a.hosts[h].node.Name, world.EgressAddress{EgressIP: e.Name, IP: ip}) == world.TooLate
}

// onTime says whether any host can take an address that was not too late with another.
func (a *assigner) onTime(ip netip.Addr) (any bool) {
	a.candidates(ip, func(h int) { any = any || !a.hosts[h].late })
	return any
}

// staysAt is the host that the status names for an address, if it can go on with it, or nowhere.
func (a *assigner) staysAt(o *object, ip netip.Addr) int {
	h := a.former(o.e, ip)
	if h == nowhere || !a.inNetwork(a.hosts[h].node, ip) {
		return nowhere
	}
	if same, _ := o.has(h, world.FamilyOf(ip)); same {
		return nowhere
	}
	return h
}

// former is the host that the status names for an address, or nowhere.
func (a *assigner) former(e *world.EgressIP, ip netip.Addr) int {
	for _, it := range e.Items {
		if it.IP != ip {
			continue
		}
		h, found := slices.BinarySearchFunc(a.hosts, it.Node, func(h host, name string) int { return cmp.Compare(h.node.Name, name) })
		if found {
			return h
		}
		return nowhere
	}
	return nowhere
}

// complete places what has no place yet, the address with the fewest possible hosts first, so that no other takes its only one.
func (a *assigner) complete(o *object) {
	var todo []*place
	for i := range o.places {
		if p := &o.places[i]; p.host == nowhere && p.why.event == "" {
			todo = append(todo, p)
		}
	}
	if len(todo) > 1 {
		slices.SortStableFunc(todo, func(x, y *place) int { return a.possible(x.ip) - a.possible(y.ip) })
	}
	for _, p := range todo {
		h := a.best(o, p.ip)
		if h == nowhere {
			h = a.staysAt(o, p.ip)
		}
		if h == nowhere {
			p.why = a.nowhere(p.ip)
			continue
		}
		if by, is := a.givenUp[p.ip]; is {
			p.why, o.waitsFor = stillGivenBy(p.ip, by), append(o.waitsFor, by.egressIP)
			continue
		}
		a.put(p, h)
	}
}

func (a *assigner) put(p *place, h int) {
	p.host = h
	a.hosts[h].load++
}

// possible counts the hosts with a link into the subnet of an address.
func (a *assigner) possible(ip netip.Addr) int {
	n := 0
	a.candidates(ip, func(int) { n++ })
	return n
}

// best is the host that an address goes to: of those that have no address of this object and family (4.2) one that was not too late with another, then one
// that has none of the other family either, then the one with the fewest addresses (4.4), then the first by name.
func (a *assigner) best(o *object, ip netip.Addr) int {
	f := world.FamilyOf(ip)
	best, bestShared := nowhere, false
	a.candidates(ip, func(h int) {
		if same, other := o.has(h, f); !same && (best == nowhere || a.better(h, other, best, bestShared)) {
			best, bestShared = h, other
		}
	})
	return best
}

func (a *assigner) better(h int, shared bool, than int, thanShared bool) bool {
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

// has says whether an object has an address of family f, or of the other one, on a host.
func (o *object) has(h int, f world.Family) (same, other bool) {
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
