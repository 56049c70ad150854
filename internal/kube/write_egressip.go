package kube

import (
	"strconv"
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

// writeEgressIP makes the status and the mark of an EgressIP what they should be, if the object is still at the version
// that was seen. The mark has a write of its own, before mere messages and after all else: an API server with earlier
// permissions would refuse the mark.
func writeEgressIP(shown, should *world.EgressIP) *Write {
	urgent := !shown.Placement.Same(&should.Placement)
	only := !urgent && !shown.Altered && changesMessagesOnly(shown.Conditions, should.Conditions)
	if shown.Mark != should.Mark && (only || world.SameStatus(shown, should)) {
		return writeMark(shown, should.Mark)
	}
	return &Write{Version: shown.Version, Urgent: urgent, Rewords: only, Patch: func(now time.Time) Patch {
		written := *should
		written.Placement = should.WrittenAt(now, &shown.Placement)
		return Patch{Plural: "egressips", Name: shown.Name, Subresource: "status", Type: types.MergePatchType,
			Body: []byte(toJSON(statusOf(&written))), Client: ofEgressIP}
	}}
}

// writeMark gives an EgressIP its mark. That is not urgent: the first network of a user gives all EgressIPs marks at
// once, and no move may wait for that.
func writeMark(shown *world.EgressIP, mark int) *Write {
	m := metadata{ResourceVersion: shown.Version, Annotations: map[string]any{
		v1.AnnotationEgressIPMark: strconv.Itoa(mark)}}
	patch := Patch{Plural: "egressips", Name: shown.Name, Type: types.MergePatchType, Client: ofEgressIP,
		Body: jsonBody(map[string]metadata{"metadata": m})}
	return &Write{Version: shown.Version, Patch: func(time.Time) Patch { return patch }}
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
