package egressip

import (
	"fmt"
	"strings"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// ConditionAddressConflict is True while a holder hears another machine say that it has one of the addresses.
const ConditionAddressConflict = "AddressConflict"

// Reasons of that condition, and of the Event that comes with it.
const (
	ReasonAddressInUse  = "AddressInUse"
	ReasonNoConflict    = "NoConflict"
	EventAddressInUse   = "AddressInUse"
	conflictAdvice      = "take the address from that machine, or use another egress IP"
	conflictAdviceNode  = "look at the log of egret-node there; its restart lets go of what is not its own"
	noConflictAnyLonger = "no other machine was heard to have an address lately"
)

// addressConflict is that condition; one that never had a conflict does not carry it.
func (a *assigner) addressConflict(o *object, items []world.Assignment) (c world.Condition, is bool) {
	var said []string
	for _, i := range items {
		for _, x := range a.w.Conflicts(i.Node, o.e.Name) {
			if x.IP == i.IP {
				said = append(said, a.conflictText(i, x.MAC))
			}
		}
	}
	if len(said) > 0 {
		return world.Condition{Type: ConditionAddressConflict, Status: "True", Reason: ReasonAddressInUse, Message: strings.Join(said, "; ")}, true
	}
	if condition(o.e, ConditionAddressConflict).Type == "" {
		return c, false
	}
	return world.Condition{Type: ConditionAddressConflict, Status: "False", Reason: ReasonNoConflict, Message: noConflictAnyLonger}, true
}

func (a *assigner) conflictText(i world.Assignment, mac world.HardwareAddr) string {
	whose, advice := "a machine outside the cluster", conflictAdvice
	for _, name := range a.w.Nodes() {
		if a.w.Node(name).UplinkMAC == mac {
			whose, advice = "node "+name, conflictAdviceNode
		}
	}
	return fmt.Sprintf("%s on %s is also answered for by %s (%s): %s", i.IP, i.Node, mac, whose, advice)
}

// conflictEvents tell of a conflict that the condition does not say yet.
func conflictEvents(e *world.EgressIP, now world.Condition) []decide.Event {
	if now.Status != "True" || condition(e, ConditionAddressConflict).Message == now.Message {
		return nil
	}
	return []decide.Event{{Warning: true, Reason: EventAddressInUse, Message: now.Message}}
}
