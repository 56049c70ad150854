package egressip

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/world"
)

// isUnselected says whether a node may not keep an object's addresses by spec.egressNodeSelector. A selector that
// cannot be read takes nothing away: traffic with the right source goes on.
func isUnselected(e *world.EgressIP, n *world.Node) bool {
	return e.Nodes.Problem == "" && !e.Nodes.SelectsNode(n)
}

// mayHost says whether a node may be given an object's addresses. As long as a selector cannot be read, none may.
func mayHost(e *world.EgressIP, n *world.Node) bool {
	return e.TrafficProblem == "" && e.Nodes.SelectsNode(n)
}

// unreadSelector is the selector that has to be read before a node is given an object's addresses, and why it cannot be
// read; "" if all can.
func unreadSelector(e *world.EgressIP) (field, problem string) {
	switch {
	case e.Nodes.Problem != "":
		return "spec.egressNodeSelector", e.Nodes.Problem
	case e.TrafficProblem != "":
		return "spec.trafficSelector", e.TrafficProblem
	}
	return "", ""
}

// selectorProblems are those of all its selectors.
func selectorProblems(e *world.EgressIP) []string {
	return slices.DeleteFunc([]string{e.SelectorProblem, e.Nodes.Problem, e.TrafficProblem},
		func(s string) bool { return s == "" })
}

// maxSelector is how much of a selector people are told, in runes.
const maxSelector = 256

// selectorOf is an object's selector of nodes for people, "" if it has none.
func selectorOf(e *world.EgressIP) string {
	if s := e.Nodes.String(); s != "" {
		return "spec.egressNodeSelector (" + world.Plain(s, maxSelector) + ")"
	}
	return ""
}

// noNetwork is where an address is that is in no network of the nodes that may host it.
func noNetwork(e *world.EgressIP) string {
	if s := selectorOf(e); s != "" {
		return "the network of no egress node that " + s + " matches"
	}
	return "no egress node's network"
}

// soThatItMatches adds to the advice to label a node what else it needs.
func soThatItMatches(e *world.EgressIP) string {
	if s := selectorOf(e); s != "" {
		return ", and so that " + s + " matches it"
	}
	return ""
}

// noMatch is why no node takes an address where there are egress nodes, none of which matches.
func noMatch(e *world.EgressIP, ip netip.Addr) refusal {
	text := fmt.Sprintf("no node can host %s now: %s matches no egress node: label one of its network so that it "+
		"matches, or change the selector", ip, selectorOf(e))
	return refusal{EventNoNode, ReasonNoAssignableNode, text}
}

// unreadableRefusal is why no node takes an address while a selector cannot be read.
func unreadableRefusal(ip netip.Addr, problem string) refusal {
	text := fmt.Sprintf("%s gets no node: %s", ip, problem)
	return refusal{EventNoNode, ReasonInvalidSelector, text}
}

// anyLabelled says whether there is any egress node.
func (a *assigner) anyLabelled() bool {
	return slices.ContainsFunc(a.world.Nodes(), func(name string) bool {
		_, labelled := a.w.Node(name).Labels[world.AssignableLabel]
		return labelled
	})
}
