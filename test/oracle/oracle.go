// Package oracle says whether a captured packet of a pod left with a right source.
//
// In: the API's states with the times at which they were seen, disturbances of nodes, and packets. Out: a verdict per
// packet, with the objects that had a claim to that pod. It asks no node: a source is right by what the API has, or is
// wrong.
package oracle

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/networks"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

const (
	// Promise is how long after a change in the API a former source is as right as the new one: nodes follow in 1 to
	// 3 s.
	Promise = 3 * time.Second
	// Ahead is how much later than a node this program may see a state.
	Ahead = time.Second
	// reconnects is how long after the API's return this program may still learn late of what nodes know by then.
	reconnects = 20 * time.Second
)

// forever is an end that nobody knows yet.
var forever = time.Unix(1<<40, 0)

// claim is what a state gives packets of a pod that go to some destinations.
type claim struct {
	by      string // the object; "" for none: the node's own addresses
	to      destinations.Set
	sources []netip.Addr
	nodes   []string // that the object's status names
}

func (c claim) equal(o claim) bool {
	return c.by == o.by && slices.Equal(c.to, o.to) && slices.Equal(c.sources, o.sources) &&
		slices.Equal(c.nodes, o.nodes)
}

// state is a pod's node and claims from a time on. A pod that the API does not have has neither.
type state struct {
	since  time.Time
	node   string
	claims []claim
}

func (s *state) equal(o state) bool {
	return s.node == o.node && slices.EqualFunc(s.claims, o.claims, claim.equal)
}

// disturbance is a time in which a node cannot follow the API.
type disturbance struct {
	node     string // "" is all
	from, to time.Time
}

// Oracle keeps the states of all pods. Its methods may be called at the same time.
type Oracle struct {
	mu        sync.Mutex
	world     *world.World
	changed   bool               // the change under way changes something
	pods      map[string][]state // by "namespace/name"
	disturbed []*disturbance
	windows   map[string][]window // by pod, of its states; those that were asked for since anything changed
}

// window is when a state counts. Until held it counts for an object that goes on to have a claim to the pod: a node
// that cannot follow goes on with its previous addresses.
type window struct{ from, to, held time.Time }

func (w window) contains(at time.Time) bool { return !w.from.After(at) && !w.to.Before(at) }

// New is an oracle of a cluster without objects.
func New(c *world.Config) *Oracle {
	w := world.New("", c)
	networks.KeepTables(w)
	o := &Oracle{world: w, pods: map[string][]state{}, windows: map[string][]window{}}
	o.world.FollowChanges(func(world.Entry) { o.changed = true })
	return o
}

// Apply notes a change of the API that was seen at a time. Times must not decrease.
func (o *Oracle) Apply(at time.Time, change func(*world.World)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changed = false
	if change(o.world); !o.changed {
		return
	}
	for p := range o.world.EachPod() {
		o.note(p.Key(), state{since: at, node: p.Node, claims: o.claimsOf(p)})
	}
	for key := range o.pods {
		if o.world.Pod(key) == nil {
			o.note(key, state{since: at})
		}
	}
}

// note adds a state to a pod's, unless it is the last one.
func (o *Oracle) note(key string, s state) {
	if list := o.pods[key]; len(list) == 0 || !list[len(list)-1].equal(s) {
		o.pods[key] = append(list, s)
		delete(o.windows, key)
	}
}

// claimsOf are those to all packets of a pod, those by no object last.
func (o *Oracle) claimsOf(p *world.Pod) []claim {
	var out []claim
	network := o.world.PrimaryNetwork(p.Namespace)
	for _, f := range [...]world.Family{world.V4, world.V6} {
		left := destinations.Of(f.All())
		for _, c := range o.world.Claims(p, network, f) {
			given, to := o.given(p, c.By, f), left
			if c.By.Kind == ref.EgressIP {
				to = slices.DeleteFunc(slices.Clone(o.world.Destinations(c.By.Name, f)), func(p netip.Prefix) bool {
					return world.FamilyOf(p.Addr()) != f
				})
			}
			given.to = to
			out, left = append(out, given), left.Without(to)
		}
		out = append(out, claim{to: left, sources: f.OfAddrs(o.nodeAddresses(p.Node))})
	}
	return out
}

// given is what an object gives a pod's packets of a family: its addresses, and until it is in force the node's.
func (o *Oracle) given(p *world.Pod, by ref.Object, f world.Family) claim {
	c := claim{by: by.String()}
	var placement world.Placement
	own, waits := []netip.Addr(nil), false
	if by.Kind == ref.EgressIP {
		e := o.world.EgressIP(by.Name)
		placement, own, waits = e.Placement, e.IPs, !e.InForce[f] && !e.DropWhenUnassigned
	} else {
		s := o.world.EgressService(by.Key())
		placement, waits = s.Placement, !o.world.EgressServiceBinds(by.Key(), f)
		if s.SourceIPBy == world.SourceNetwork {
			own = o.nodeAddresses(p.Node)
		}
	}
	own = slices.Clone(own)
	for _, i := range placement.Items {
		c.nodes, own = append(c.nodes, i.Node), append(own, i.IP)
	}
	for _, l := range placement.Leaving {
		c.nodes = append(c.nodes, l.Node)
	}
	if waits {
		own = append(own, o.nodeAddresses(p.Node)...)
	}
	c.sources = each(f.OfAddrs(own))
	return c
}

// nodeAddresses are all that a node is known by.
func (o *Oracle) nodeAddresses(name string) []netip.Addr {
	n := o.world.Node(name)
	if n == nil {
		return nil
	}
	out := slices.Concat(n.InternalIPs, n.HostAddrs)
	for _, p := range n.Primary {
		out = append(out, p.Addr())
	}
	return each(out)
}

// each is a list in order, with no address twice.
func each(list []netip.Addr) []netip.Addr {
	slices.SortFunc(list, netip.Addr.Compare)
	return slices.Compact(list)
}

// Disturb begins a disturbance of a node, or of all with "", and returns what ends it: nodes have followed the API by
// the time that it is given.
func (o *Oracle) Disturb(node string, from time.Time) (end func(to time.Time)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	d := &disturbance{node: node, from: from, to: forever}
	o.disturbed = append(o.disturbed, d)
	clear(o.windows)
	return func(to time.Time) {
		o.mu.Lock()
		defer o.mu.Unlock()
		d.to = to
		clear(o.windows)
	}
}

// Packet is one that left the cluster.
type Packet struct {
	At       time.Time
	Since    time.Time // states that ended before the pod was born do not count
	Pod      string    // "namespace/name"
	Src, Dst netip.Addr
}

// Judge returns "" if the source is right: an object's that had a claim to this pod's packets to this destination by a
// state within the packet's window, or the node's by a state in which none had. Else Judge says what would have been
// right.
func (o *Oracle) Judge(x Packet) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var right []string
	list, windows := o.pods[x.Pod], o.windowsOf(x.Pod)
	endedBefore := func(i int) bool { return i+1 < len(list) && !list[i+1].since.After(x.Since) }
	now := map[string]bool{} // the objects that have a claim
	for i, w := range windows {
		if !w.contains(x.At) || endedBefore(i) {
			continue
		}
		for _, c := range list[i].claims {
			if !c.to.Contains(x.Dst) {
				continue
			}
			if slices.Contains(c.sources, x.Src) {
				return ""
			}
			right, now[c.by] = append(right, c.String()), c.by != ""
		}
	}
	for i, w := range windows {
		if w.from.After(x.At) || w.held.Before(x.At) || endedBefore(i) {
			continue
		}
		for _, c := range list[i].claims {
			if now[c.by] && c.to.Contains(x.Dst) && slices.Contains(c.sources, x.Src) {
				return ""
			}
		}
	}
	if right = slices.Compact(right); len(right) == 0 {
		return "no source: the API had no such pod"
	}
	return strings.Join(right, ", or ")
}

// Claimant returns the object that has a claim to a pod's packets to a destination by the present state, or "".
func (o *Oracle) Claimant(pod string, dst netip.Addr) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if list := o.pods[pod]; len(list) > 0 {
		for _, c := range list[len(list)-1].claims {
			if c.to.Contains(dst) {
				return c.by
			}
		}
	}
	return ""
}

// windowsOf are those of a pod's states.
func (o *Oracle) windowsOf(pod string) []window {
	if known, is := o.windows[pod]; is {
		return known
	}
	list := o.pods[pod]
	out := make([]window, len(list))
	for i := range list {
		out[i] = window{list[i].since.Add(-o.early(list[i].since)), forever, forever}
		if i+1 < len(list) {
			out[i].to, out[i].held = o.expiry(&list[i], &list[i+1])
		}
	}
	o.windows[pod] = out
	return out
}

func (c claim) String() string {
	if c.by == "" {
		return fmt.Sprintf("%v of its node", c.sources)
	}
	return fmt.Sprintf("%v of %s", c.sources, c.by)
}

// early is by how much a node may have acted before the state was seen here.
func (o *Oracle) early(since time.Time) time.Duration {
	out := Ahead
	for _, d := range o.disturbed {
		if d.node == "" && !since.Before(d.from) && !since.After(d.to.Add(reconnects)) {
			out = max(out, since.Sub(d.from))
		}
	}
	return out
}

// expiry returns until when a state that another followed counts: for the promise, and for as long as the pod's node
// could not follow. Until held any node that must follow could not. The pod's node alone chooses where packets go, so
// that a state of other objects does not count for longer.
func (o *Oracle) expiry(s, next *state) (to, held time.Time) {
	to = next.since.Add(Promise)
	held = to
	for _, d := range o.disturbed {
		if d.node != "" && !s.concerns(d.node) && !next.concerns(d.node) {
			continue
		}
		follows := o.follows(d.node, next.since)
		if held = later(held, follows); d.node == "" || d.node == s.node || d.node == next.node {
			to = later(to, follows)
		}
	}
	return to, held
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// follows is when a node has followed a change: it was not disturbed for a promise since.
func (o *Oracle) follows(node string, since time.Time) time.Time {
	end := since.Add(Promise)
	for again := true; again; {
		again = false
		for _, d := range o.disturbed {
			until := d.to.Add(Promise)
			if (d.node == node || d.node == "") && !d.from.After(end) && !d.to.Before(since) && until.After(end) {
				end, again = until, true
			}
		}
	}
	return end
}

// concerns says whether a node is the pod's or is named by the status of an object that has a claim to it.
func (s *state) concerns(node string) bool {
	return s.node == node || slices.ContainsFunc(s.claims, func(c claim) bool { return slices.Contains(c.nodes, node) })
}
