package egressip

import (
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/patience"
)

// notSteering are the nodes that are waited for to confirm that they steer.
func (a *assigner) notSteering(name string, u patience.Unsteered) []hindrance {
	var out []hindrance
	for _, n := range u.Waiting {
		f := decide.Finding{Kind: EventNodeProblem, Reason: notSteered, Family: n.Family, Node: n.Node, Detail: n.Says}
		out = append(out, hindrance{f, n.Text, a.refuses(n.Node, name)})
	}
	return out
}
