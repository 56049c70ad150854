package decide

import (
	"strings"

	"github.com/egret-net/egret/internal/world"
)

// What is said of pods' packets while an object has no node for them, as api/v1 documents it.
const (
	ConditionFallback = "Fallback"

	ReasonHosted = "Hosted"
	ReasonNodeIP = "NodeIP"
	ReasonDrop   = "Drop"

	EventFallback = "FellBack"
)

// whenUnassigned is api/v1's AnnotationWhenUnassigned.
const whenUnassigned = "egret.k8s.ovn.org/when-unassigned"

// Fallback is the reason of condition Fallback where it is True, and its message: what an object lacks, what becomes of
// its pods' packets, and that the annotation decides about that.
func Fallback(lacks, becomes string, drop bool) (reason, message string) {
	if drop {
		return ReasonDrop, lacks + ": " + becomes + ", as annotation " + whenUnassigned + "=drop asks"
	}
	return ReasonNodeIP, lacks + ": " + becomes + "; annotate it " + whenUnassigned + "=drop to have that dropped"
}

// FallsBack is the Event when pods lose their address, or the choice becomes the other one. Of a new object others tell
// what is wrong with it.
func FallsBack(before []world.Condition, now world.Condition) []Event {
	old := Condition(before, ConditionFallback)
	if now.Status != "True" || old.Status == "" || old.Status == "True" && old.Reason == now.Reason {
		return nil
	}
	return []Event{{Warning: true, Reason: EventFallback, Message: now.Message}}
}

// Families names those of which something is so, for people: "IPv4 and IPv6", or "".
func Families(is func(world.Family) bool) string {
	var names []string
	for _, f := range []world.Family{world.V4, world.V6} {
		if is(f) {
			names = append(names, "IP"+f.String())
		}
	}
	return strings.Join(names, " and ")
}
