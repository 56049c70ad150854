package controller_test

import (
	"testing"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/feature/egressservice"
	"github.com/egret-net/egret/internal/feature/network"
	"github.com/egret-net/egret/internal/feature/service"
	"github.com/egret-net/egret/internal/world"
)

// A feature does not import the API's types: the names that both have must be the same.
func TestNamesAreTheAPIs(t *testing.T) {
	for _, pair := range [][2]string{
		{world.AssignableLabel, v1.LabelEgressAssignable},
		{egressip.ConditionAssigned, v1.ConditionAssigned},
		{egressip.ConditionReady, v1.ConditionReady},
		{egressip.ConditionInForce, v1.ConditionInForce},
		{egressip.ReasonPartiallyAssigned, v1.ReasonPartiallyAssigned},
		{egressip.ReasonNoAssignableNode, v1.ReasonNoAssignableNode},
		{egressip.ReasonNoNodeInNetwork, v1.ReasonNoNodeInNetwork},
		{egressip.ReasonInvalidEgressIP, v1.ReasonInvalidEgressIP},
		{egressip.ReasonInvalidSelector, v1.ReasonInvalidSelector},
		{egressip.ReasonConflict, v1.ReasonEgressIPConflict},
		{egressip.ReasonWaitingForNode, v1.ReasonWaitingForNode},
		{egressip.ReasonHeld, v1.ReasonHeld},
		{egressip.ReasonNotHeld, v1.ReasonNotHeld},
		{egressip.EventMoved, v1.EventMoved},
		{egressip.EventReleased, v1.EventReleased},
		{egressip.EventUnsupported, v1.EventUnsupportedRequest},
		{egressip.EventNoNode, v1.EventNoMatchingNodeFound},
		{egressip.EventUnassigned, v1.EventUnassignedRequest},
		{egressip.EventOverlap, v1.EventUndefinedRequest},
		{egressip.EventFallback, v1.EventFallback},
		{egressip.EventNodeProblem, v1.EventNodeProblem},
		{egressip.ConditionFallback, v1.ConditionFallback},
		{egressip.ConditionOverlapped, v1.ConditionOverlapped},
		{egressip.ReasonHosted, v1.ReasonHosted},
		{egressip.ReasonNodeIP, v1.ReasonNodeIP},
		{egressip.ReasonDrop, v1.ReasonDrop},
		{egressip.ReasonServedByOther, v1.ReasonServedByOther},
		{egressip.ReasonNoOverlap, v1.ReasonNoOverlap},
		{egressip.ConditionAddressConflict, v1.ConditionAddressConflict},
		{egressip.ConditionMarked, v1.ConditionMarked},
		{egressip.ReasonNoMarkLeft, v1.ReasonNoMarkLeft},
		{egressip.ReasonNoMarkLeft, v1.EventNoMarkLeft},
		{egressip.EventMarkReplaced, v1.EventMarkReplaced},
		{network.EventPortsClosed, v1.EventPortsClosed},
		{egressip.ConditionNetworksServed, v1.ConditionNetworksServed},
		{egressip.ReasonNetworkUnsupported, v1.ReasonNetworkUnsupported},
		{service.ConditionRefused, v1.ConditionRefused},
		{service.ReasonRefused, v1.ReasonRefused},
		{world.ConditionServed, v1.ConditionServed},
		{service.ReasonServed, v1.ReasonServed},
		{egressip.ConditionTrafficSelected, v1.ConditionTrafficSelected},
		{egressip.ReasonNetworksSelected, v1.ReasonNetworksSelected},
		{egressip.ReasonNoNetworks, v1.ReasonNoNetworks},
		{egressip.ReasonTooManyNetworks, v1.ReasonTooManyNetworks},
		{egressip.EventNetworksRemoved, v1.EventNetworksRemoved},
		{egressip.EventTrafficProblem, v1.EventTrafficProblem},
		{egressservice.LabelPrefix, v1.LabelEgressService},
		{egressservice.ReasonNetworkUnsupported, v1.ReasonNetworkUnsupported},
		{egressservice.ReasonNoService, v1.ReasonNoService},
		{egressservice.ReasonTooMany, v1.ReasonTooManyEgressServices},
		{egressservice.ConditionAssigned, v1.ConditionAssigned},
		{egressservice.ConditionReady, v1.ConditionReady},
		{egressservice.ConditionOverlapped, v1.ConditionOverlapped},
		{egressservice.ReasonAssigned, v1.ReasonAssigned},
		{egressservice.ReasonHeld, v1.ReasonHeld},
		{egressservice.ReasonWaitingForNode, v1.ReasonWaitingForNode},
		{egressservice.ReasonInvalidSpec, v1.ReasonInvalidSpec},
		{egressservice.ReasonInvalidSelector, v1.ReasonInvalidSelector},
		{egressservice.ReasonNetworkNotAllowed, v1.ReasonNetworkNotAllowed},
		{egressservice.ReasonNotLoadBalancer, v1.ReasonNotLoadBalancer},
		{egressservice.ReasonNoIngressIP, v1.ReasonNoIngressIP},
		{egressservice.ReasonNoEndpoints, v1.ReasonNoEndpoints},
		{egressservice.ReasonIngressIPConflict, v1.ReasonIngressIPConflict},
		{egressservice.ReasonHostNetworkEndpoints, v1.ReasonHostNetworkEndpoints},
		{egressservice.ReasonNoMatchingNode, v1.ReasonNoMatchingNode},
		{egressservice.ReasonLabelTooLong, v1.ReasonLabelTooLong},
		{egressservice.ReasonLabelAmbiguous, v1.ReasonLabelAmbiguous},
		{world.HostAll, v1.EgressServiceHostAll},
		{world.ReasonUnknownNetwork, v1.ReasonUnknownNetwork},
		{world.ReasonNoDefaultRoute, v1.ReasonNoDefaultRoute},
		{egressservice.ReasonServedByOther, v1.ReasonServedByOther},
		{egressservice.ReasonNoOverlap, v1.ReasonNoOverlap},
		{egressservice.EventOverlap, v1.EventUndefinedRequest},
		{egressservice.EventAssigned, v1.EventAssigned},
		{egressservice.EventMoved, v1.EventMoved},
		{egressservice.EventReleased, v1.EventReleased},
		{egressservice.EventNodeProblem, v1.EventNodeProblem},
		{egressip.ReasonAddressInUse, v1.ReasonAddressInUse},
		{egressip.ReasonNoConflict, v1.ReasonNoConflict},
	} {
		if have, want := pair[0], pair[1]; have != want {
			t.Errorf("have %q, the API says %q", have, want)
		}
	}
}
