package egressservice

import (
	"maps"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// LabelPrefix is api/v1's LabelEgressService.
const LabelPrefix = "egress-service.k8s.ovn.org/"

// maxLabelName, in characters, is how long the name of a label's key can be, without the prefix.
const maxLabelName = 63

// labelOf is the name of the label of an EgressService's host, without the prefix.
func labelOf(s *world.EgressService) string { return s.Namespace + "-" + s.Name }

// labels are which node has which label.
type labels struct {
	nodes map[string]map[string]struct{} // EgressServices by node that has their labels
	stale map[string]struct{}            // nodes whose labels must be looked at
}

func newLabels() labels {
	return labels{nodes: map[string]map[string]struct{}{}, stale: map[string]struct{}{}}
}

// moveLabel notes that a label goes from one node to another; "" stands for no node.
func (l *labels) moveLabel(key, from, to string) {
	if from == to {
		return
	}
	if from != "" {
		delete(l.nodes[from], key)
		l.stale[from] = struct{}{}
	}
	if to != "" {
		if l.nodes[to] == nil {
			l.nodes[to] = map[string]struct{}{}
		}
		l.nodes[to][key] = struct{}{}
		l.stale[to] = struct{}{}
	}
}

// labelledNode is the node that has the label: a load balancer announces the Service from there. That is the host, but
// while it is not ready to translate, and a former host still does: connections from outside go where their replies do.
func (o *object) labelledNode(p world.Placement) string {
	if o.host == world.HostAll {
		return ""
	}
	unheld := func(i world.Assignment) bool { return !o.round.Holds(o.s.Key(), i) }
	if slices.ContainsFunc(o.items, unheld) {
		for _, l := range p.Leaving {
			if o.round.Holds(o.s.Key(), world.Assignment{Node: l.Node, IP: l.IP}) && o.round.W.Alive(l.Node) {
				return l.Node
			}
		}
	}
	return o.host
}

// desiredLabels says which labels nodes have, of those for which that may be news.
func (d *Decider) desiredLabels(v decide.View) (out []decide.Desired) {
	names := slices.Sorted(maps.Keys(d.labels.stale))
	clear(d.labels.stale)
	for _, name := range names {
		n := v.Said(name)
		if n == nil {
			continue
		}
		var want []string
		for key := range d.labels.nodes[name] {
			if s := v.EgressService(key); s != nil {
				want = append(want, LabelPrefix+labelOf(s))
			}
		}
		slices.Sort(want)
		if !slices.Equal(want, labelsOf(n)) {
			out = append(out, decide.Desired{Kind: world.KindNode, Key: name, Decision: world.Decision{UID: n.UID,
				Labels: world.Labels{Prefix: LabelPrefix, Keys: want}}})
		}
	}
	return out
}

// labelsOf returns a node's labels of the prefix, sorted; the controller has not written one with a value.
func labelsOf(n *world.Node) []string {
	var out []string
	for key, value := range n.Labels {
		if strings.HasPrefix(key, LabelPrefix) {
			out = append(out, key+value)
		}
	}
	slices.Sort(out)
	return out
}
