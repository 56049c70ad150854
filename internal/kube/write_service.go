package kube

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/world"
)

// serviceManager owns what the controller says in the status of Services (server-side apply).
const serviceManager = "egret-controller"

// serviceApply is what of a Service the controller decides: a condition that it applied before and leaves out now goes.
type serviceApply struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Status     struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// writeService makes the conditions of a Service that are the controller's what they should be, unless another object
// has its name by now.
func writeService(shown, should *world.Service) *Write {
	apply := serviceApply{APIVersion: "v1", Kind: "Service", Metadata: map[string]string{
		"namespace": shown.Namespace, "name": shown.Name, "uid": shown.UID,
	}}
	apply.Status.Conditions = []metav1.Condition{}
	for _, k := range should.Conditions {
		if k.Type != v1.ConditionRefused {
			continue // not the controller's
		}
		apply.Status.Conditions = append(apply.Status.Conditions, metav1.Condition{
			Type: k.Type, Status: metav1.ConditionStatus(k.Status), Reason: k.Reason, Message: k.Message,
			LastTransitionTime: metav1.NewTime(k.Since),
		})
	}
	body := []byte(encode(apply))
	return &Write{shown.Version, func(time.Time) Patch {
		return Patch{Plural: "services", Namespace: shown.Namespace, Name: shown.Name, Subresource: "status",
			Type: types.ApplyYAMLPatchType, Manager: serviceManager, Body: body, Client: ofCore}
	}}
}
