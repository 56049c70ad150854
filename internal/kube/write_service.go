package kube

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/world"
)

// serviceConditions are the types of conditions of a Service that are the controller's.
var serviceConditions = []string{v1.ConditionRefused, v1.ConditionServed}

// servicePatch is a strategic merge patch: conditions are merged by type, and others' stay. A server-side apply would
// remove only what metadata.managedFields says is the controller's. Everybody who may write the Service can empty that.
type servicePatch struct {
	Metadata map[string]string `json:"metadata"`
	Status   struct {
		Conditions []map[string]any `json:"conditions"`
	} `json:"status"`
}

// writeService makes the conditions of a Service that are the controller's what they should be, unless another object
// has its name by now.
func writeService(shown, should *world.Service) *Write {
	patch := servicePatch{Metadata: map[string]string{"uid": shown.UID}}
	for _, kind := range serviceConditions {
		is := func(c world.Condition) bool { return c.Type == kind }
		if i := slices.IndexFunc(should.Conditions, is); i >= 0 {
			c := should.Conditions[i]
			patch.Status.Conditions = append(patch.Status.Conditions, map[string]any{"type": kind, "status": c.Status,
				"reason": c.Reason, "message": c.Message, "lastTransitionTime": metav1.NewTime(c.Since),
				"observedGeneration": nil})
		} else if slices.ContainsFunc(shown.Conditions, is) {
			patch.Status.Conditions = append(patch.Status.Conditions, map[string]any{"type": kind, "$patch": "delete"})
		}
	}
	body := []byte(toJSON(patch))
	return &Write{Version: shown.Version, Patch: func(time.Time) Patch {
		return Patch{Plural: "services", Namespace: shown.Namespace, Name: shown.Name, Subresource: "status",
			Type: types.StrategicMergePatchType, Body: body, Client: ofCore}
	}}
}
