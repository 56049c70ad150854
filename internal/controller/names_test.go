package controller_test

import (
	"testing"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/feature/service"
)

// A feature does not import the API's types: the names that both have must be the same.
func TestNamesAreTheAPIs(t *testing.T) {
	for have, want := range map[string]string{
		egressip.AssignableLabel: v1.LabelEgressAssignable, egressip.ConditionAssigned: v1.ConditionAssigned,
		egressip.ConditionReady:   v1.ConditionReady,
		egressip.ConditionInForce: v1.ConditionInForce, egressip.ReasonPartiallyAssigned: v1.ReasonPartiallyAssigned,
		egressip.ReasonNoAssignableNode: v1.ReasonNoAssignableNode,
		egressip.ReasonNoNodeInNetwork:  v1.ReasonNoNodeInNetwork,
		egressip.ReasonInvalidEgressIP:  v1.ReasonInvalidEgressIP,
		egressip.ReasonInvalidSelector:  v1.ReasonInvalidSelector,
		egressip.ReasonConflict:         v1.ReasonEgressIPConflict,
		egressip.ReasonWaitingForNode:   v1.ReasonWaitingForNode,
		egressip.ReasonHeld:             v1.ReasonHeld,
		egressip.ReasonNotHeld:          v1.ReasonNotHeld, egressip.EventMoved: v1.EventMoved,
		egressip.EventReleased:    v1.EventReleased,
		egressip.EventUnsupported: v1.EventUnsupportedRequest, egressip.EventNoNode: v1.EventNoMatchingNodeFound,
		egressip.EventUnassigned: v1.EventUnassignedRequest, egressip.EventOverlap: v1.EventUndefinedRequest,
		egressip.EventFallback:     v1.EventFallback,
		egressip.EventNodeProblem:  v1.EventNodeProblem,
		egressip.ConditionFallback: v1.ConditionFallback, egressip.ConditionOverlapped: v1.ConditionOverlapped,
		egressip.ReasonHosted: v1.ReasonHosted, egressip.ReasonNodeIP: v1.ReasonNodeIP,
		egressip.ReasonDrop:          v1.ReasonDrop,
		egressip.ReasonServedByOther: v1.ReasonServedByOther, egressip.ReasonNoOverlap: v1.ReasonNoOverlap,
		egressip.ConditionAddressConflict: v1.ConditionAddressConflict,
		service.ConditionRefused:          v1.ConditionRefused, service.ReasonRefused: v1.ReasonRefused,
		egressip.ConditionTrafficSelected: v1.ConditionTrafficSelected,
		egressip.ReasonNetworksSelected:   v1.ReasonNetworksSelected,
		egressip.ReasonNoNetworks:         v1.ReasonNoNetworks,
		egressip.ReasonTooManyNetworks:    v1.ReasonTooManyNetworks,
		egressip.EventNetworksRemoved:     v1.EventNetworksRemoved,
		egressip.EventTrafficProblem:      v1.EventTrafficProblem,
		egressip.ReasonAddressInUse:       v1.ReasonAddressInUse, egressip.ReasonNoConflict: v1.ReasonNoConflict,
	} {
		if have != want {
			t.Errorf("have %q, the API says %q", have, want)
		}
	}
}
