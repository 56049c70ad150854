// Package tally counts the objects that a leading controller decides about.
//
// In: the world with decisions, and what changes in it. Out: gauges for a registry of Prometheus.
package tally

import (
	"maps"
	"slices"
	"sync"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Tally counts EgressIPs and EgressServices as they were decided. Collect adds them up, so that all its metrics are of
// one time. Only Collect may be called in another goroutine.
type Tally struct {
	mu         sync.Mutex
	shares     map[ref.Object]share
	nodes      map[string]bool // whether each is an egress node
	standingBy int             // pods

	stale map[world.Entry]struct{} // objects and nodes that must be counted again
}

// share is what one EgressIP or EgressService adds.
type share struct {
	hosts      []string // the nodes that metrics count it for: one for each address of an EgressIP
	places     []world.Assignment
	asked      int
	unassigned bool
	conflict   bool
	fallback   string // why its pods leave with their node's address; "": they do not
	notReady   string // why it is not Ready; "": it is
}

// New returns a tally of nothing.
func New() *Tally {
	t := &Tally{}
	t.BeginCount(nil)
	return t
}

// BeginCount forgets all counts, and notes all objects of a world, if there is one, as stale.
func (t *Tally) BeginCount(w *world.World) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shares, t.nodes, t.standingBy = map[ref.Object]share{}, map[string]bool{}, 0
	t.stale = map[world.Entry]struct{}{}
	if w == nil {
		return
	}
	for kind, keys := range map[world.Kind][]string{world.KindEgressIP: w.EgressIPs(),
		world.KindEgressService: w.EgressServices(), world.KindNode: w.Nodes()} {
		for _, key := range keys {
			t.stale[world.Entry{Kind: kind, Key: key}] = struct{}{}
		}
	}
}

// NoteChanged notes what must be counted again.
func (t *Tally) NoteChanged(e world.Entry) {
	switch e.Kind {
	case world.KindEgressIP, world.KindEgressService, world.KindNode:
		t.stale[e] = struct{}{}
	}
}

// CountStale counts again what has changed. Overlapped are pods that several EgressIPs select.
func (t *Tally) CountStale(w *world.World, overlapped int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.standingBy = overlapped
	for e := range t.stale {
		switch e.Kind {
		case world.KindNode:
			t.countNode(w.Node(e.Key), e.Key)
		case world.KindEgressIP:
			t.countEgressIP(w.EgressIP(e.Key), e.Key)
		case world.KindEgressService:
			t.countEgressService(w.EgressService(e.Key), e.Key)
		}
	}
	clear(t.stale)
}

func (t *Tally) countNode(n *world.Node, name string) {
	if n == nil {
		delete(t.nodes, name)
		return
	}
	_, t.nodes[name] = n.Labels[world.AssignableLabel]
}

func (t *Tally) countEgressIP(e *world.EgressIP, key string) {
	if e == nil {
		delete(t.shares, ref.OfKey(key))
		return
	}
	s := shareOf(e.Conditions)
	s.asked, s.places = len(e.IPs), slices.Clone(e.Items)
	for _, i := range e.Items {
		s.hosts = append(s.hosts, i.Node)
	}
	for _, ip := range e.IPs {
		if !slices.ContainsFunc(e.Items, func(i world.Assignment) bool { return i.IP == ip }) {
			s.places = append(s.places, world.Assignment{IP: ip})
		}
	}
	t.shares[ref.OfKey(key)] = s
}

func (t *Tally) countEgressService(e *world.EgressService, key string) {
	if e == nil {
		delete(t.shares, ref.OfKey(key))
		return
	}
	s := shareOf(e.Conditions)
	s.places = slices.Clone(e.Items)
	if e.Host != "" {
		s.hosts = []string{e.Host}
	}
	t.shares[ref.OfKey(key)] = s
}

// shareOf returns what an object's conditions add.
func shareOf(conditions []world.Condition) (s share) {
	assigned, ready := decide.Condition(conditions, egressip.ConditionAssigned),
		decide.Condition(conditions, egressip.ConditionReady)
	s.unassigned = assigned.Status != "True"
	s.conflict = decide.Condition(conditions, egressip.ConditionAddressConflict).Status == "True"
	if ready.Status != "True" {
		s.notReady = ready.Reason
	}
	switch lacks := decide.Condition(conditions, decide.ConditionFallback); {
	case lacks.Status != "True":
	case lacks.Reason == decide.ReasonNodeIP:
		s.fallback = assigned.Reason
	case lacks.Reason == decide.ReasonWaitingForNode: // nodes that have not confirmed that they drop
		s.fallback = lacks.Reason
	}
	return s
}

// sums are what all shares add up to.
type sums struct {
	ips, services                    map[string]int // by node
	fallback, notReady               map[[2]string]int
	unassigned                       map[string]int // by kind
	conflicts, asked, standingByPods int
}

func (t *Tally) sumShares() sums {
	s := sums{ips: map[string]int{}, services: map[string]int{}, fallback: map[[2]string]int{},
		notReady: map[[2]string]int{}, unassigned: map[string]int{}, standingByPods: t.standingBy}
	for name, isEgressNode := range t.nodes {
		if isEgressNode {
			s.ips[name] = 0
		}
	}
	for o, one := range t.shares {
		s.addShare(o, one)
	}
	maps.DeleteFunc(s.ips, func(name string, _ int) bool { _, is := t.nodes[name]; return !is })
	return s
}

func (s *sums) addShare(o ref.Object, one share) {
	hosts := s.ips
	if o.Kind == ref.EgressService {
		hosts = s.services
	}
	for _, node := range one.hosts {
		hosts[node]++
	}
	if s.asked += one.asked; one.unassigned {
		s.unassigned[o.Kind]++
	}
	if one.conflict {
		s.conflicts++
	}
	if one.fallback != "" {
		s.fallback[[2]string{o.Kind, one.fallback}]++
	}
	if one.notReady != "" {
		s.notReady[[2]string{o.Kind, one.notReady}]++
	}
}
