package clearance

import (
	"maps"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// pod is one of this node's pods.
type pod struct {
	addrs  []world.PodAddr // in all networks: a node may not know yet by which the pod talks to the outside
	said   []netip.Addr    // in its primary network, that other nodes can know of
	claims [2][]claim      // by family
	labels labels.Set
	// changed is the moment that a node must have followed to know the pod's labels and addresses.
	changed moment
}

// claim is an object's to a pod's packets.
type claim struct {
	by      world.Claimant
	network int // the number of the pod's primary network
	mark    int // of the object's packets in a network of users; 0: it has none yet, or needs none
	to      destinations.Set
	nodes   []string // other ones that the object's status names, or that this node yields to
	been    []string // these, and those that it named since the claim began
	// begun is the moment with which it began, or became one to more, or others could know of the pod's address and the
	// mark; never: that is not noted yet; unnamed: others cannot know of it yet.
	begun moment
}

// address is one of this node's pods', or was.
type address struct {
	pods    map[string]struct{} // by key: a successor may have it before the former pod's object is gone
	formers []former
}

// followPod takes in one pod.
func (m *Machine) followPod(key string, changed map[world.PodAddr]struct{}) {
	old, now := m.pods[key], m.readPod(key)
	if old == nil && now == nil {
		return
	}
	if old == nil {
		old = &pod{}
	}
	if now == nil {
		delete(m.pods, key)
		now = &pod{}
	} else {
		m.pods[key] = now
	}
	now.inheritNames(old)
	m.noteChange(now, old)
	m.countNeeded(old, -1)
	m.countNeeded(now, 1)
	m.noteFormerState(now, old)
	for _, at := range old.addrs {
		changed[at] = struct{}{}
		f, has := world.FamilyOf(at.IP), slices.Contains(now.addrs, at)
		for _, c := range old.claims[f] {
			if !has || !slices.ContainsFunc(now.claims[f], c.goesOn) {
				m.ended = true
				m.noteEnd(at, former{by: []world.Claimant{c.by}, to: c.to, end: m.ends + 1, everywhere: true})
			}
		}
		if !has {
			delete(m.byAddr[at].pods, key)
		}
	}
	for _, at := range now.addrs {
		changed[at] = struct{}{}
		m.addressFor(at).pods[key] = struct{}{}
	}
	m.beginClaims(key, now, old)
}

// noteChange notes whether nodes that have followed the pod as it was know it.
func (m *Machine) noteChange(now, old *pod) {
	if now.changed = old.changed; now.knownAs(old) {
		return
	}
	if now.changed = beforeStart; m.former == nil {
		now.changed, m.ended = m.ends+1, true
	}
	m.latest[world.KindPod] = now.changed
}

// knownAs says whether others know nothing else of a pod than of one before.
func (p *pod) knownAs(o *pod) bool {
	return maps.Equal(p.labels, o.labels) && slices.Equal(p.addrs, o.addrs) && slices.Equal(p.said, o.said)
}

// inheritNames has claims that go on know of the nodes that their objects' status has named.
func (p *pod) inheritNames(old *pod) {
	for f, claims := range p.claims {
		for i, c := range claims {
			for _, o := range old.claims[f] {
				if o.by == c.by {
					claims[i].been = append(slices.Clone(o.been), c.nodes...)
					if slices.Equal(p.addrs, old.addrs) && slices.Equal(p.said, old.said) && c.isKnownAs(o) {
						claims[i].begun = o.begun
					}
					slices.Sort(claims[i].been)
					claims[i].been = slices.Compact(claims[i].been)
				}
			}
		}
	}
}

// beginClaims notes which claims of a pod have begun. A node that knows of a pod that has come under an object, or has
// got other labels, and not of what objects select by now, may translate for the one that would have selected it
// before.
func (m *Machine) beginClaims(key string, p, old *pod) {
	for f, claims := range p.claims {
		for i := range claims {
			c := &claims[i]
			began := m.beginClaim(c, len(world.Family(f).OfAddrs(p.said)) > 0)
			if m.former != nil || !began && p.changed == old.changed {
				continue
			}
			selected := m.selectedFor(key, claims, world.Family(f))
			for _, at := range p.addrs {
				goesOn := p.changed == old.changed && slices.ContainsFunc(old.claims[f], c.isBy)
				if world.FamilyOf(at.IP) == world.Family(f) && !goesOn {
					m.noteEnd(at, former{to: c.to, end: max(selected, m.selectedAt(key, at.IP)), everywhere: true})
				}
			}
		}
	}
}

// beginClaim says whether a claim to packets from an address that others may know of has begun.
func (m *Machine) beginClaim(c *claim, said bool) bool {
	if c.begun != never {
		return false
	}
	if c.begun = beforeStart; m.former != nil {
		return true
	}
	if c.begun, m.ended = m.ends+1, true; !said {
		c.begun = unnamed
	}
	return true
}

func (c claim) isBy(o claim) bool { return o.by == c.by && o.network == c.network }

// goesOn says whether a claim is still to all that c is to.
func (c claim) goesOn(now claim) bool { return c.isBy(now) && c.isWithin(now) }

// isKnownAs says whether a node that knows of o knows of c.
func (c claim) isKnownAs(o claim) bool { return c.mark == o.mark && c.goesOn(o) }

// isWithin says whether another claim is to all that c is to.
func (c claim) isWithin(o claim) bool { return o.to.Equal(c.to) || len(c.to.Without(o.to)) == 0 }

// readPod returns a pod as far as it matters here, nil if it is not this node's.
func (m *Machine) readPod(key string) *pod {
	if p := m.w.Pod(key); p == nil || p.Node != m.w.Self || p.HostNetwork || p.Completed {
		m.readers.ForgetUnit(key)
		return nil
	}
	view := m.readers.ReaderOf(key).Reading(m.w)
	p := view.Pod(key)
	out := &pod{addrs: view.ClaimedAddrs(p), labels: p.Labels}
	network := view.Network(view.PrimaryNetwork(p.Namespace))
	if network == nil {
		return out
	}
	out.said = view.PodIPs(p, network.Name)
	for _, f := range view.Config.Families() {
		for _, c := range view.Claims(p, network.Name, f) {
			nodes := namedNodes(view, c.By, f)
			out.claims[f] = append(out.claims[f], claim{by: view.ClaimantOf(c.By), network: network.ID,
				mark: markIn(view, network, c.By), to: view.ClaimedDestinations(c.By, f), nodes: nodes, been: nodes})
		}
	}
	return out
}

// markIn returns the mark by which nodes translate an object's packets in a network of users.
func markIn(v *world.View, n *world.Network, object ref.Object) int {
	if n.ID == 0 || object.Kind != ref.EgressIP {
		return 0
	}
	return v.MarkOf(object.Name)
}

// namedNodes are the other nodes that an object's status names for addresses of a family, and those that this node
// yields to.
func namedNodes(v *world.View, object ref.Object, f world.Family) (nodes []string) {
	p := v.PlacementOf(object.Key())
	if p == nil {
		return nil
	}
	add := func(node string, ip netip.Addr) {
		if y := v.Yielded(object.Key(), ip); y != nil && node == v.Self && y.To != "" {
			node = y.To
		}
		if node != v.Self && node != world.HostAll && world.FamilyOf(ip) == f && !slices.Contains(nodes, node) {
			nodes = append(nodes, node)
		}
	}
	for _, a := range p.Items {
		add(a.Node, a.IP)
	}
	for _, l := range p.Leaving {
		add(l.Node, l.IP)
	}
	return nodes
}

// countNeeded notes for how many claims of pods each node is needed.
func (m *Machine) countNeeded(p *pod, by int) {
	for _, claims := range p.claims {
		for _, c := range claims {
			for _, name := range c.nodes {
				n := m.nodes[name]
				if n == nil {
					n = &node{}
					m.nodes[name] = n
				}
				n.claims += by
			}
		}
	}
}

// addressFor returns the address, which may be new: a former process may have had pods with it. Of one that comes later
// nobody here knows whose it was.
func (m *Machine) addressFor(at world.PodAddr) *address {
	a := m.byAddr[at]
	if a != nil {
		return a
	}
	a = &address{pods: map[string]struct{}{}}
	m.byAddr[at] = a
	if m.former == nil {
		a.formers = []former{{to: destinations.Everything(), end: m.freshFor(at.Network), everywhere: true,
			unclaimed: true}}
		return a
	}
	for _, name := range sortedKeys(m.nodes) {
		if n := m.nodes[name]; n.cleared && !n.older && n.heard == never {
			m.notePriorClaim(a, name, m.former.leadingObjects(at, name))
		}
	}
	return a
}

// leadingObjects are the objects by which packets of an address were led to a node.
func (f *Former) leadingObjects(at world.PodAddr, node string) (by []ref.Object) {
	for _, object := range f.Pods[at] {
		if slices.Contains(f.Nodes[world.FamilyOf(at.IP)][object], node) {
			by = append(by, object)
		}
	}
	return by
}

// notePriorClaim notes that a node may translate by claims from before this process. Each object by which packets were
// led there is trusted with the destinations that it had then. The rest may be another object's there, which gave the
// pod up while the node was silent.
func (m *Machine) notePriorClaim(a *address, node string, led []ref.Object) {
	rest := destinations.Everything()
	note := func(to destinations.Set, by ...world.Claimant) {
		if len(to) > 0 {
			a.formers = append(a.formers, former{by: by, to: to, end: beforeStart, at: []string{node}})
		}
	}
	for _, object := range led {
		to, limited := m.former.To[object]
		if !limited && len(led) == 1 {
			to = destinations.Everything()
		}
		note(to, m.w.ClaimantOf(object))
		rest = rest.Without(to)
	}
	note(rest)
}

// unawareNodes are the claims to an address that nodes may not know of yet to which packets are led, or for which they
// may not have their own part of the pod's network yet.
func (m *Machine) unawareNodes(at world.PodAddr, a *address) (list []world.Former) {
	for _, key := range sortedKeys(a.pods) {
		for _, c := range m.pods[key].claims[world.FamilyOf(at.IP)] {
			var names []string
			for _, name := range c.nodes {
				n := m.nodes[name]
				since := max(c.begun, n.parts[c.network])
				if !n.cleared || n.older || n.heard >= since {
					continue
				}
				if names = append(names, name); since != unnamed {
					n.due, n.awaited = max(n.due, since), true
				}
			}
			if len(names) > 0 {
				list = append(list, world.Former{Begun: true, By: []world.Claimant{c.by}, To: c.to, Nodes: names})
			}
		}
	}
	return list
}

// rivalClaims are the claims of the pods that have one address.
func (m *Machine) rivalClaims(at world.PodAddr, a *address) (list []world.Former) {
	for _, key := range sortedKeys(a.pods) {
		for _, c := range m.pods[key].claims[world.FamilyOf(at.IP)] {
			if len(c.been) > 0 {
				list = append(list, world.Former{Shared: true, By: []world.Claimant{c.by}, To: c.to, Nodes: c.been})
			}
		}
	}
	return list
}
