package handover

import (
	"maps"
	"slices"

	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Served counts, node by node, the running pods to whose packets objects have claims: EgressIPs, and the EgressService of a
// pod, whether its claim is the first or not. A pod that does not run yet is
// not counted: CNI ADD lets it start when its node steers.
type Served struct {
	PerPod[servedBy]
	nodes map[servedBy]map[string]int // pods by node
	// News are the objects whose nodes have become others, by key.
	News map[string]struct{}
}

// servedBy is an object with a claim to packets of a pod on a node in a family; in Served.nodes without the node.
type servedBy struct {
	by     ref.Object
	family world.Family
	node   string
}

// NewServed has counted nothing yet.
func NewServed() *Served {
	s := &Served{nodes: map[servedBy]map[string]int{}, News: map[string]struct{}{}}
	s.PerPod = NewPerPod(servers, s.count)
	return s
}

// servers are a pod's, in the families in which it has an address.
func servers(w *world.View, p *world.Pod) []servedBy {
	if !p.Running || p.Node == "" {
		return nil
	}
	var out []servedBy
	for _, f := range w.Config.Families() {
		if len(f.OfAddrs(p.IPs)) == 0 {
			continue
		}
		for _, c := range w.Claims(p, ref.DefaultNetwork, f) {
			out = append(out, servedBy{c.By, f, p.Node})
		}
	}
	return out
}

func (s *Served) count(list []servedBy, n int) {
	for _, by := range list {
		key := servedBy{by: by.by, family: by.family}
		if s.nodes[key] == nil {
			s.nodes[key] = map[string]int{}
		}
		before := s.nodes[key][by.node]
		if s.nodes[key][by.node] += n; before+n == 0 {
			delete(s.nodes[key], by.node)
		}
		if before == 0 || before+n == 0 {
			s.News[by.by.Key()] = struct{}{}
		}
		if len(s.nodes[key]) == 0 {
			delete(s.nodes, key)
		}
	}
}

// Nodes are those with running pods that an object serves in a family, by name.
func (s *Served) Nodes(object ref.Object, f world.Family) []string {
	return slices.Sorted(maps.Keys(s.nodes[servedBy{by: object, family: f}]))
}
