package egressip

import (
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/world"
)

// fallback says what becomes of selected pods' packets in the families in which no address has a node: the choice of annotation
// egret.k8s.ovn.org/when-unassigned.
func fallback(e *world.EgressIP, items []world.Assignment) world.Condition {
	var lacking []string
	for _, f := range []world.Family{world.V4, world.V6} {
		on := func(i world.Assignment) bool { return world.FamilyOf(i.IP) == f }
		if e.Asks(f) && !slices.ContainsFunc(items, on) {
			lacking = append(lacking, "IP"+f.String())
		}
	}
	which := strings.Join(lacking, " and ")
	c := world.Condition{Type: ConditionFallback, Status: "True", Reason: ReasonNodeIP}
	switch {
	case len(e.IPs) == 0:
		c.Message = "it has no address that can be hosted: selected pods leave with their node's address"
	case which == "":
		c.Status, c.Reason, c.Message = "False", ReasonHosted, "in every family that it has addresses of, one has a node"
	case e.DropWhenUnassigned:
		c.Reason = ReasonDrop
		c.Message = "no " + which + " address of it has a node: what selected pods send outside over " + which + " is dropped, as annotation " + whenUnassigned + "=drop asks"
	default:
		c.Message = "no " + which + " address of it has a node: selected pods leave over " + which + " with their node's address; annotate it " + whenUnassigned + "=drop to have that dropped"
	}
	return c
}

// whenUnassigned is api/v1's AnnotationWhenUnassigned.
const whenUnassigned = "egret.k8s.ovn.org/when-unassigned"

// fallsBack is the Event when pods lose their egress IP, or the choice becomes the other one. Of a new object the refusals tell.
func fallsBack(e *world.EgressIP, now world.Condition) []Event {
	old := condition(e, ConditionFallback)
	if now.Status != "True" || old.Status == "" || old.Status == "True" && old.Reason == now.Reason {
		return nil
	}
	return []Event{{Warning: true, Reason: EventFallback, Message: now.Message}}
}
