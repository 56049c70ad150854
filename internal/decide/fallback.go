package decide

import (
	"strings"

	"github.com/egret-net/egret/internal/world"
)

// These are the reasons of condition Fallback, as api/v1 documents them.
const (
	ConditionFallback = "Fallback"

	ReasonHosted         = "Hosted"
	ReasonNodeIP         = "NodeIP"
	ReasonDrop           = "Drop"
	ReasonWaitingForNode = "WaitingForNode"
	ReasonServedByOther  = "ServedByOther"
	ReasonDroppedByOther = "DroppedByOther"

	EventFallback = "FellBack"
)

// FallsBack is the Event when pods lose their address, or what becomes of their packets gets another reason. Of a new
// object others tell what is wrong with it. The last node's confirmation of a known state is not news, nor is another
// object that takes over.
func FallsBack(before []world.Condition, now world.Condition) []Event {
	old := Condition(before, ConditionFallback)
	fallen := old.Status == "True" && (requestedReason(old) == requestedReason(now) || ofOthers(now))
	if now.Status != "True" || old.Status == "" || fallen {
		return nil
	}
	return []Event{{Warning: true, Reason: EventFallback, Message: now.Message}}
}

// requestedReason is the reason of condition Fallback once all nodes have done what it asks for.
func requestedReason(c world.Condition) string {
	if c.Reason == ReasonWaitingForNode {
		return ReasonDrop
	}
	return c.Reason
}

func ofOthers(c world.Condition) bool {
	return c.Reason == ReasonServedByOther || c.Reason == ReasonDroppedByOther
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
