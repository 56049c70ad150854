package kube

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/world"
)

// convertConditions are those of a status.
func convertConditions(list []metav1.Condition) []world.Condition {
	var out []world.Condition
	for _, c := range list {
		out = append(out, world.Condition{
			Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message,
			Generation: c.ObservedGeneration, Since: c.LastTransitionTime.Time,
		})
	}
	return out
}

// statusConditions are conditions as a status has them.
func statusConditions(list []world.Condition) []metav1.Condition {
	var out []metav1.Condition
	for _, c := range list {
		out = append(out, metav1.Condition{
			Type: c.Type, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
			ObservedGeneration: c.Generation, LastTransitionTime: metav1.NewTime(c.Since),
		})
	}
	return out
}

// changesMessagesOnly reports whether conditions become others that differ from them in messages, and in nothing else.
func changesMessagesOnly(shown, should []world.Condition) bool {
	lacks := func(c world.Condition) bool {
		return !slices.ContainsFunc(should, func(o world.Condition) bool {
			o.Message = c.Message
			return c.Same(o)
		})
	}
	return len(shown) == len(should) && !slices.ContainsFunc(shown, lacks)
}

// inForce says by family whether a status lists it.
func inForce(list []v1.IPFamily) [2]bool {
	return [2]bool{slices.Contains(list, v1.IPv4), slices.Contains(list, v1.IPv6)}
}

// familiesOf lists the families of which something is true, as a status does.
func familiesOf(is [2]bool) []v1.IPFamily {
	var out []v1.IPFamily
	for f, family := range []v1.IPFamily{v1.IPv4, v1.IPv6} {
		if is[f] {
			out = append(out, family)
		}
	}
	return out
}
