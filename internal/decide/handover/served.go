package handover

import (
	"maps"
	"slices"

	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Served counts, node by node, the running pods that objects of one kind serve, and those that they are for and do not
// serve, by who does. A pod that does not run yet is not counted: CNI ADD lets it start when its node steers.
type Served struct {
	// News are the objects whose nodes have become others, or whose pods are served by others than before, by key.
	News   map[string]struct{}
	nodes  map[packets]map[string]int     // pods by node
	others map[packets]map[ref.Object]int // pods by who has the claim that the object has not
}

// packets are those of a family that an object's pods send.
type packets struct {
	of     ref.Object
	family world.Family
}

// ServedBy is an object and packets of a family that a pod on a node sends, which the object is for.
type ServedBy struct {
	By     ref.Object
	Family world.Family
	Node   string
	// Without: it has no claim to them. Claimant has; nobody, if that is zero: they leave with the node's address.
	Without  bool
	Claimant ref.Object
}

// NotServedBy are packets that an object has no claim to, because others have these; none: nobody has.
func NotServedBy(object ref.Object, f world.Family, node string, claims []world.Claim) []ServedBy {
	not := ServedBy{By: object, Family: f, Node: node, Without: true}
	if len(claims) == 0 {
		return []ServedBy{not}
	}
	var out []ServedBy
	for _, c := range claims {
		not.Claimant = c.By
		out = append(out, not)
	}
	return out
}

// NewServed has counted no pod yet. Of says who serves a pod that runs on a node.
func NewServed(pods *Pods, of func(*world.View, *world.Pod) []ServedBy) *Served {
	s := &Served{nodes: map[packets]map[string]int{}, others: map[packets]map[ref.Object]int{},
		News: map[string]struct{}{}}
	NewPodList(pods, func(w *world.View, p *world.Pod) []ServedBy {
		if !p.Running || p.Node == "" {
			return nil
		}
		return of(w, p)
	}, s.countServed)
	return s
}

func (s *Served) countServed(list []ServedBy, n int) {
	for _, by := range list {
		of := packets{by.By, by.Family}
		if by.Without {
			addCount(s.others, of, by.Claimant, n)
			s.News[by.By.Key()] = struct{}{}
		} else if before := addCount(s.nodes, of, by.Node, n); before == 0 || before+n == 0 {
			s.News[by.By.Key()] = struct{}{}
		}
	}
}

// addCount counts n more of one, and returns how many there were.
func addCount[K comparable](counts map[packets]map[K]int, of packets, one K, n int) (before int) {
	if counts[of] == nil {
		counts[of] = map[K]int{}
	}
	before = counts[of][one]
	if counts[of][one] += n; before+n == 0 {
		delete(counts[of], one)
	}
	if len(counts[of]) == 0 {
		delete(counts, of)
	}
	return before
}

// Nodes are those with running pods that an object serves in a family, by name.
func (s *Served) Nodes(object ref.Object, f world.Family) []string {
	return slices.Sorted(maps.Keys(s.nodes[packets{object, f}]))
}

// Others are how many running pods that an object is for it does not serve in a family, by who does; zero is nobody.
func (s *Served) Others(object ref.Object, f world.Family) map[ref.Object]int {
	return s.others[packets{object, f}]
}
