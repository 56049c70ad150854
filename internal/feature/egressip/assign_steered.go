package egressip

import (
	"slices"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/world"
)

// unsteered are nodes that have not confirmed that they lead the selected pods that run there to all that hold an
// address, in words.
type unsteered struct {
	waiting []hindrance // that are waited for
	silent  []string    // that were, for as long as that may take
	awaited []string    // the names of those that may end up there, each once: they do not say what keeps them
}

// unsteered looks at one object. Only egress nodes are probed: another whose agent is gone is waited for no longer than
// a former holder is kept for it.
func (a *assigner) unsteered(e *world.EgressIP, items []world.Assignment) (u unsteered) {
	for _, f := range a.w.Config.Families() {
		to := handover.OfFamily(items, f)
		if len(to) == 0 {
			continue
		}
		for _, node := range a.round().Unconfirmed(ofName(e.Name), f, to) {
			a.note(&u, e, items, node, f)
		}
	}
	return u
}

// note says of a node that has not confirmed whether it is waited for. The time for it begins when all that it is to
// confirm is there. A report that is full may leave out this object: that counts as silence.
func (a *assigner) note(u *unsteered, e *world.EgressIP, items []world.Assignment, node string, f world.Family) {
	over := a.Patience.unconfirmed(node, e.Name)
	says := a.w.Problem(node, e.Name) != "" && !a.w.SteersUntold(node, e.Name)
	silent := !says && (over || len(a.waiting(e.Name, items)) == 0)
	if silent && !slices.Contains(u.awaited, node) {
		u.awaited = append(u.awaited, node)
	}
	if silent && over {
		u.silent = append(u.silent, a.silentText(node, e.Name, f))
		return
	}
	u.waiting = append(u.waiting, hindrance{decide.Finding{Kind: EventNodeProblem, Reason: notSteered, Family: f,
		Node: node, Detail: a.w.Problem(node, e.Name)}, a.unsteeredText(node, e.Name, f), a.refuses(node, e.Name)})
}

// unsteeredText says what is missing, and what the node says of it.
func (a *assigner) unsteeredText(node, egressIP string, f world.Family) string {
	text := node + " does not lead its pods there over IP" + f.String() + " yet"
	if p := a.w.Problem(node, egressIP); p != "" {
		text += ": " + p
	}
	return text
}

// silentText says what is not known of a node.
func (a *assigner) silentText(node, egressIP string, f world.Family) string {
	text := node + " has not confirmed for " + leavingFor.String() + " that it leads its pods there over IP" +
		f.String() + ": "
	if p := a.w.Problem(node, egressIP); p != "" {
		return text + p
	}
	return text + "see whether egret-node runs there"
}

// given is what is added to a condition that does not wait for nodes any more.
func (u unsteered) given() string {
	if len(u.silent) == 0 {
		return ""
	}
	return "; " + decide.Some(u.silent)
}
