package egressip

import (
	"slices"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/world"
)

// fallbackCondition says what becomes of selected pods' packets in the families in which no address has a node: the
// choice of annotation egret.k8s.ovn.org/when-unassigned. Its message speaks of the families that the spec leaves out,
// too.
func (a *assigner) fallbackCondition(o *object, d Decision) world.Condition {
	e := o.e
	lacks := func(f world.Family) bool { return e.Asks(f) && !hasFamily(d.Items, f) }
	kept := func(f world.Family) bool { return d.InForce[f] && !e.DropWhenUnassigned } // which drops without an end
	c := a.handoverRound().Fallback(handover.Fallback{Object: refTo(e.Name), Drop: e.DropWhenUnassigned,
		Lacks: func(f world.Family) bool { return lacks(f) && !kept(f) },
		Kept:  func(f world.Family) bool { return lacks(f) && kept(f) },
		Words: handover.FallbackWords{Lacks: "no %s address of it has a node", Leave: otherwiseText(e, "%s"),
			Sent: "what selected pods send " + destinationsText(e) + " over %s", Until: o.keptUntil()}})
	switch {
	case len(e.IPs) == 0:
		c.Reason, c.Message = ReasonNodeIP, noAddress
	case c.Reason == "":
		c.Status, c.Reason, c.Message = "False", ReasonHosted,
			"in every family that it has addresses of, one has a node"
	}
	c.Message += unaskedFamilies(a.w.Config, e)
	if e.UnassignedProblem != "" {
		c.Message += "; " + e.UnassignedProblem
	}
	return c
}

// isKept says whether an object stays in force in a family though no node has an address. Which nodes could host one,
// and to which destinations, is not known as long as a selector cannot be read; and what another object, or its node,
// has to let go of first is free before long. Until then no packet leaves rather than one with a node's address.
func (o *object) isKept(f world.Family) bool {
	_, problem := unreadSelector(o.e)
	return o.e.InForce[f] && o.e.Asks(f) && (problem != "" || slices.ContainsFunc(o.places, func(p place) bool {
		return world.FamilyOf(p.ip) == f && p.isWaiting()
	}))
}

// isWaiting says whether an address has no node because another object, or its node, has to let go of it first.
func (p place) isWaiting() bool { return p.host == nowhere && p.why.condition == ReasonWaitingForNode }

// keptUntil is when that ends, for people.
func (o *object) keptUntil() string {
	if field, problem := unreadSelector(o.e); problem != "" {
		return field + " can be read"
	}
	if slices.ContainsFunc(o.places, place.isWaiting) {
		return "one that is waited for is free, as condition Assigned says"
	}
	return "ten seconds have passed in which it can be given an address that no older EgressIP has"
}

// unaskedFamilies says what selected pods leave with over a family of the cluster that the spec has no address of; the
// annotation does not concern it.
func unaskedFamilies(config *world.Config, e *world.EgressIP) string {
	which := decide.Families(func(f world.Family) bool { return !e.Asks(f) && len(config.Cluster(f)) > 0 })
	if which == "" || len(e.IPs) == 0 {
		return ""
	}
	return "; it has no " + which + " address: over " + which +
		" selected pods leave with their node's address, unless another EgressIP serves them"
}

// noAddress is what happens where there is no family to speak of.
const noAddress = "it has no address that can be hosted: selected pods leave with their node's address"

// otherwiseText is what becomes of selected pods' packets in families that it has addresses of and in which it is not
// in force.
func otherwiseText(e *world.EgressIP, families string) string {
	switch {
	case e.DropWhenUnassigned:
		return "what selected pods send " + destinationsText(e) + " over " + families + " is dropped"
	case e.Traffic != nil:
		return "selected pods leave " + destinationsText(e) + " over " + families +
			" with their node's address or another EgressIP's"
	}
	return "selected pods leave over " + families + " with their node's address"
}

// destinationsText is to which destinations an object serves selected pods.
func destinationsText(e *world.EgressIP) string {
	if e.Traffic != nil {
		return "to the networks that it selects"
	}
	return "outside"
}

func hasFamily(items []world.Assignment, f world.Family) bool {
	return slices.ContainsFunc(items, func(i world.Assignment) bool { return world.FamilyOf(i.IP) == f })
}
