package kube

import (
	"net/netip"
	"slices"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// problemsOf are the problems that an EgressNode reports.
func problemsOf(o *egretv1.EgressNode) []world.Problem {
	problems := make([]world.Problem, len(o.Status.ObjectProblems))
	for i, p := range o.Status.ObjectProblems {
		object := ref.Object{Kind: p.Kind, Namespace: p.Namespace, Name: p.Name}
		problems[i] = world.Problem{Object: object, Reason: p.Reason, Message: p.Message}
	}
	return problems
}

// problemTexts are problems as people read them. Agents of 338da51 read the typed ones only where these say the same.
func problemTexts(problems []world.Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, cutCharacters(p.String(), egretv1.MaxProblemLength))
	}
	return out
}

func saysReason(problems []world.Problem, reason string) bool {
	return slices.ContainsFunc(problems, func(p world.Problem) bool { return p.Reason == reason })
}

func readProblems(h *world.Holding, list []world.Problem) {
	list, err := atMost(list, maxProblems)
	for _, p := range list {
		noteProblem(h, p)
	}
	addUnreadProblem(h, "problems", err)
}

// noteProblem files a problem under its object, under a subnet, or under the node. Kinds that this program does not
// know are no matter of its.
func noteProblem(h *world.Holding, p world.Problem) {
	network, err := netip.ParsePrefix(p.Object.Name)
	switch {
	case p.Object.Kind == ref.Network && err == nil:
		if h.Faults == nil {
			h.Faults = map[netip.Prefix]string{}
		}
		h.Faults[network] = plainText(p.Message)
	case p.Object.Kind == ref.Node:
		noteText(h, "", p.Reason, p.Message)
	default:
		if key, known := objectKey(p.Object); known && isKey(key) {
			noteText(h, key, p.Reason, p.Message)
		}
	}
}

func noteText(h *world.Holding, key, reason, text string) {
	if h.Problems == nil {
		h.Problems, h.Reasons = map[string]string{}, map[string]string{}
	}
	if h.Problems[key] == "" {
		h.Problems[key], h.Reasons[key] = plainText(text), plainText(reason)
	}
}

// Fault is the problem that a subnet can host nothing.
func Fault(network netip.Prefix, why string) world.Problem {
	object := ref.Object{Kind: ref.Network, Name: network.String()}
	return world.Problem{Object: object, Reason: world.ReasonNetworkFault, Message: why}
}
