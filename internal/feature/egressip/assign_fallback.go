package egressip

import (
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// fallback says what becomes of selected pods' packets in the families in which no address has a node: the choice of
// annotation egret.k8s.ovn.org/when-unassigned. Its message speaks of the families that the spec leaves out, too.
func fallback(config *world.Config, e *world.EgressIP, d Decision) world.Condition {
	lacks := func(f world.Family) bool { return e.Asks(f) && !hasFamily(d.Items, f) }
	which := decide.Families(func(f world.Family) bool { return lacks(f) && !d.InForce[f] })
	kept := decide.Families(func(f world.Family) bool { return lacks(f) && d.InForce[f] })
	c := world.Condition{Type: ConditionFallback, Status: "True", Reason: ReasonNodeIP}
	switch {
	case len(e.IPs) == 0:
		c.Message = noAddress
	case which == "" && kept != "":
		c.Reason = ReasonDrop
	case which == "":
		c.Status, c.Reason, c.Message = "False", ReasonHosted,
			"in every family that it has addresses of, one has a node"
	default:
		c.Reason, c.Message = decide.Fallback("no "+which+" address of it has a node", otherwise(e, which),
			e.DropWhenUnassigned)
	}
	if kept != "" {
		c.Message = strings.TrimPrefix(c.Message+"; "+keptText(e, kept), "; ")
	}
	c.Message += unasked(config, e)
	if e.UnassignedProblem != "" {
		c.Message += "; " + e.UnassignedProblem
	}
	return c
}

// keptText says what becomes of selected pods' packets in families in which isKept is so.
func keptText(e *world.EgressIP, families string) string {
	field, _ := unread(e)
	return "no " + families + " address of it has a node: what selected pods send " + where(e) + " over " + families +
		" is dropped until " + field + " can be read"
}

// unasked says what selected pods leave with over a family of the cluster that the spec has no address of; the
// annotation does not concern it.
func unasked(config *world.Config, e *world.EgressIP) string {
	which := decide.Families(func(f world.Family) bool { return !e.Asks(f) && len(config.Cluster(f)) > 0 })
	if which == "" || len(e.IPs) == 0 {
		return ""
	}
	return "; it has no " + which + " address: over " + which +
		" selected pods leave with their node's address, unless another EgressIP serves them"
}

// noAddress is what happens where there is no family to speak of.
const noAddress = "it has no address that can be hosted: selected pods leave with their node's address"

// otherwise is what becomes of selected pods' packets in families that it has addresses of and in which it is not in
// force.
func otherwise(e *world.EgressIP, families string) string {
	switch {
	case e.DropWhenUnassigned:
		return "what selected pods send " + where(e) + " over " + families + " is dropped"
	case e.Traffic != nil:
		return "selected pods leave " + where(e) + " over " + families + " with their node's address or another " +
			"EgressIP's"
	}
	return "selected pods leave over " + families + " with their node's address"
}

// where is to which destinations an object serves selected pods.
func where(e *world.EgressIP) string {
	if e.Traffic != nil {
		return "to the networks that it selects"
	}
	return "outside"
}

func hasFamily(items []world.Assignment, f world.Family) bool {
	return slices.ContainsFunc(items, func(i world.Assignment) bool { return world.FamilyOf(i.IP) == f })
}
