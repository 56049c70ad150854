package egressip

import (
	"fmt"
	"strings"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// ConditionAddressConflict is True while a holder receives packets by which another machine says that it has one of the
// addresses.
const ConditionAddressConflict = "AddressConflict"

// Reasons of that condition, and of the Event that comes with it.
const (
	ReasonAddressInUse  = "AddressInUse"
	ReasonNoConflict    = "NoConflict"
	EventAddressInUse   = "AddressInUse"
	conflictAdvice      = "take the address from that machine, or use another egress IP"
	conflictAdviceNode  = "look at the log of egret-node there; its restart lets go of what is not its own"
	noConflictAnyLonger = "no other machine has answered for an address lately"
)

// addressConflict returns that condition and its Events; an EgressIP that never had a conflict does not carry it.
func (a *assigner) addressConflict(o *object, items []world.Assignment) (
	c world.Condition, notices []decide.Notice, is bool) {
	var said []string
	for _, i := range items {
		for _, x := range a.w.Conflicts(i.Node, o.e.Name) {
			if x.IP == i.IP {
				text := a.conflictText(i, x.MAC)
				f := decide.Finding{Kind: EventAddressInUse, IP: i.IP, Node: i.Node, Detail: x.MAC.String()}
				said = append(said, text)
				notices = append(notices, decide.Notice{Finding: f, Event: EventAddressInUse, Message: text})
			}
		}
	}
	if len(said) > 0 {
		return world.Condition{Type: ConditionAddressConflict, Status: "True", Reason: ReasonAddressInUse,
			Message: strings.Join(said, "; ")}, notices, true
	}
	if conditionOf(o.e, ConditionAddressConflict).Type == "" {
		return c, nil, false
	}
	return world.Condition{Type: ConditionAddressConflict, Status: "False", Reason: ReasonNoConflict,
		Message: noConflictAnyLonger}, nil, true
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
