package handover

import (
	"maps"
	"slices"

	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Served counts, node by node, the running pods that objects of one kind serve. A pod that does not run yet is not
// counted: CNI ADD lets it start when its node steers.
type Served struct {
	PerPod[ServedBy]
	// News are the objects whose nodes have become others, by key.
	News  map[string]struct{}
	nodes map[ServedBy]map[string]int // pods by node
}

// ServedBy is an object that serves packets of a pod on a node in a family; in Served.nodes without the node.
type ServedBy struct {
	By     ref.Object
	Family world.Family
	Node   string
}

// NewServed has counted nothing yet. Of says who serves a pod that runs on a node.
func NewServed(of func(*world.View, *world.Pod) []ServedBy) *Served {
	s := &Served{nodes: map[ServedBy]map[string]int{}, News: map[string]struct{}{}}
	s.PerPod = NewPerPod(func(w *world.View, p *world.Pod) []ServedBy {
		if !p.Running || p.Node == "" {
			return nil
		}
		return of(w, p)
	}, s.count)
	return s
}

func (s *Served) count(list []ServedBy, n int) {
	for _, by := range list {
		key := ServedBy{By: by.By, Family: by.Family}
		if s.nodes[key] == nil {
			s.nodes[key] = map[string]int{}
		}
		before := s.nodes[key][by.Node]
		if s.nodes[key][by.Node] += n; before+n == 0 {
			delete(s.nodes[key], by.Node)
		}
		if before == 0 || before+n == 0 {
			s.News[by.By.Key()] = struct{}{}
		}
		if len(s.nodes[key]) == 0 {
			delete(s.nodes, key)
		}
	}
}

// Nodes are those with running pods that an object serves in a family, by name.
func (s *Served) Nodes(object ref.Object, f world.Family) []string {
	return slices.Sorted(maps.Keys(s.nodes[ServedBy{By: object, Family: f}]))
}
