package kube

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/world"
)

// hostingPatch has every field of the status, so that what is empty becomes empty.
type hostingPatch struct {
	Metadata metadata `json:"metadata"`
	Status   struct {
		Host              string                       `json:"host"`
		SourceIPs         []string                     `json:"sourceIPs"`
		AssignedSourceIPs string                       `json:"assignedSourceIPs"`
		Items             []v1.EgressServiceStatusItem `json:"items"`
		Leaving           []v1.EgressServiceLeaving    `json:"leaving"`
		InForce           []v1.IPFamily                `json:"inForce"`
		Conditions        any                          `json:"conditions"`
	} `json:"status"`
}

// writeEgressService makes the status of an EgressService what it should be, if the object is still at the version that
// was seen.
func writeEgressService(shown, should *world.EgressService) *Write {
	urgent := shown.Host != should.Host || !shown.Placement.Same(&should.Placement)
	only := !urgent && !shown.Altered && changesMessagesOnly(shown.Conditions, should.Conditions)
	return &Write{Version: shown.Version, Urgent: urgent, Rewords: only, Patch: func(now time.Time) Patch {
		written := *should
		written.Placement = should.WrittenAt(now, &shown.Placement)
		s := EgressServiceStatus(&written)
		patch := hostingPatch{Metadata: metadata{ResourceVersion: should.Version}}
		patch.Status.Host, patch.Status.SourceIPs, patch.Status.Leaving = s.Host, s.SourceIPs, s.Leaving
		patch.Status.Items = s.Items
		patch.Status.AssignedSourceIPs = s.AssignedSourceIPs
		patch.Status.InForce, patch.Status.Conditions = s.InForce, s.Conditions
		return Patch{Plural: "egressservices", Namespace: shown.Namespace, Name: shown.Name, Subresource: "status",
			Type: types.MergePatchType, Body: []byte(toJSON(patch)), Client: ofEgressIP}
	}}
}
