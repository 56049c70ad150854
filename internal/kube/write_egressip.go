package kube

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/world"
)

// statusPatch has every field of the status, so that what is empty becomes empty.
type statusPatch struct {
	Metadata metadata `json:"metadata"`
	Status   struct {
		Items             []v1.EgressIPStatusItem `json:"items"`
		AssignedNodes     string                  `json:"assignedNodes"`
		AssignedEgressIPs string                  `json:"assignedEgressIPs"`
		Leaving           []v1.EgressIPLeaving    `json:"leaving"`
		Granted           []string                `json:"granted"`
		InForce           []v1.IPFamily           `json:"inForce"`
		Conditions        any                     `json:"conditions"`
	} `json:"status"`
}

// writeEgressIP makes the status of an EgressIP what it should be, if the object is still at the version that was seen.
func writeEgressIP(shown, should *world.EgressIP) *Write {
	urgent := !shown.Placement.Same(&should.Placement)
	only := !urgent && !shown.Altered && changesMessagesOnly(shown.Conditions, should.Conditions)
	return &Write{Version: shown.Version, Urgent: urgent, Rewords: only, Patch: func(now time.Time) Patch {
		written := *should
		written.Placement = should.WrittenAt(now, &shown.Placement)
		return Patch{Plural: "egressips", Name: shown.Name, Subresource: "status", Type: types.MergePatchType,
			Body: []byte(toJSON(statusOf(&written))), Client: ofEgressIP}
	}}
}

func statusOf(e *world.EgressIP) statusPatch {
	s := EgressIPStatus(e)
	patch := statusPatch{Metadata: metadata{ResourceVersion: e.Version}}
	patch.Status.Items = s.Items
	patch.Status.AssignedNodes, patch.Status.AssignedEgressIPs = s.AssignedNodes, s.AssignedEgressIPs
	patch.Status.Leaving, patch.Status.Granted = s.Leaving, s.Granted
	patch.Status.InForce, patch.Status.Conditions = s.InForce, s.Conditions
	return patch
}
