package egressip

import (
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// troubles are what holders refuse of the rows of pods, though they hold what they are assigned: those pods are not
// translated.
func (a *assigner) troubles(name string, items []world.Assignment) []hindrance {
	var out []hindrance
	for _, i := range items {
		if a.holds(name, i) && a.refuses(i.Node, name) {
			problem := a.w.Problem(i.Node, name)
			text := i.Node + " holds " + i.IP.String() + " and does not serve all pods: " + problem
			f := decide.Finding{Kind: EventNodeProblem, Reason: notServed, IP: i.IP, Node: i.Node, Detail: problem}
			out = append(out, hindrance{f, text, true})
		}
	}
	return out
}

// refuses says whether a node has a problem of that EgressIP, and not of all.
func (a *assigner) refuses(node, name string) bool { return a.round().Refuses(node, name) }
