package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/world"
)

// metadata is what a merge patch says of an object's metadata. A resourceVersion makes the API server refuse it (conflict) unless the
// object is still at that version.
type metadata struct {
	ResourceVersion string         `json:"resourceVersion,omitempty"`
	Annotations     map[string]any `json:"annotations,omitempty"`
}

// PatchNode merges annotations into a node, if it is still at version; an empty version is any, and an empty annotation is removed. It
// returns the new version.
func (c *Clients) PatchNode(ctx context.Context, name, version string, annotations map[string]string) (string, error) {
	values := map[string]any{}
	for key, value := range annotations {
		if values[key] = value; value == "" {
			values[key] = nil // RFC 7386
		}
	}
	body := encode(map[string]metadata{"metadata": {version, values}})
	version, err := versionAfter(ctx, c.Core.Patch(types.MergePatchType).Resource(string(Nodes)).Name(name).Body([]byte(body)))
	if err != nil {
		return "", fmt.Errorf("annotations of node %s: %w", name, err)
	}
	return version, nil
}

// statusPatch has every field of the status, so that what is empty becomes empty.
type statusPatch struct {
	Metadata metadata `json:"metadata"`
	Status   struct {
		Items             []v1.EgressIPStatusItem `json:"items"`
		AssignedNodes     string                  `json:"assignedNodes"`
		AssignedEgressIPs string                  `json:"assignedEgressIPs"`
		Leaving           []v1.EgressIPLeaving    `json:"leaving"`
		InForce           []v1.IPFamily           `json:"inForce"`
		Conditions        any                     `json:"conditions"`
	} `json:"status"`
}

// PatchEgressIPStatus makes the status of an EgressIP say what e says, if the object is still at e.Version. It returns the new version.
func (c *Clients) PatchEgressIPStatus(ctx context.Context, e *world.EgressIP) (string, error) {
	s := EgressIPStatus(e)
	patch := statusPatch{Metadata: metadata{ResourceVersion: e.Version}}
	patch.Status.Items, patch.Status.AssignedNodes, patch.Status.AssignedEgressIPs = s.Items, s.AssignedNodes, s.AssignedEgressIPs
	patch.Status.Leaving, patch.Status.InForce, patch.Status.Conditions = s.Leaving, s.InForce, s.Conditions
	version, err := versionAfter(ctx, c.EgressIP.Patch(types.MergePatchType).Resource(string(EgressIPs)).Name(e.Name).SubResource("status").Body([]byte(encode(patch))))
	if err != nil {
		return "", fmt.Errorf("status of EgressIP %s: %w", e.Name, err)
	}
	return version, nil
}

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

// ApplyServiceConditions makes these conditions of a Service the only ones that are the controller's, unless another object has its name by
// now. It returns the new version.
func (c *Clients) ApplyServiceConditions(ctx context.Context, s *world.Service, conditions []world.Condition) (string, error) {
	apply := serviceApply{APIVersion: "v1", Kind: "Service", Metadata: map[string]string{"namespace": s.Namespace, "name": s.Name, "uid": s.UID}}
	apply.Status.Conditions = []metav1.Condition{}
	for _, k := range conditions {
		apply.Status.Conditions = append(apply.Status.Conditions, metav1.Condition{
			Type: k.Type, Status: metav1.ConditionStatus(k.Status), Reason: k.Reason, Message: k.Message, LastTransitionTime: metav1.NewTime(k.Since),
		})
	}
	version, err := versionAfter(ctx, c.Core.Patch(types.ApplyYAMLPatchType).Namespace(s.Namespace).Resource(string(Services)).Name(s.Name).SubResource("status").
		Param("fieldManager", serviceManager).Param("force", "true").Body([]byte(encode(apply))))
	if err != nil {
		return "", fmt.Errorf("status of Service %s: %w", s.Key(), err)
	}
	return version, nil
}

// onlyMetadata asks the API server to answer with an object's metadata alone: to encode the rest costs it time that other writes need.
const onlyMetadata = runtime.ContentTypeProtobuf + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// versionAfter sends a write, and returns the object's new version.
func versionAfter(ctx context.Context, write *rest.Request) (string, error) {
	var out metav1.PartialObjectMetadata
	err := write.SetHeader("Accept", onlyMetadata).Do(ctx).Into(&out)
	return out.ResourceVersion, err
}
