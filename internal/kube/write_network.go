package kube

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	cniv1 "github.com/egret-net/egret/api/cni/v1"
	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/networks"
	"github.com/egret-net/egret/internal/ref"
)

// writeNetworkRequest makes a request's finalizers what they should be, and then its status.
func writeNetworkRequest(shown, should *networks.Request) *Write {
	body := map[string]any{"metadata": map[string]any{"resourceVersion": shown.Version}}
	patch := Patch{Plural: "userdefinednetworks", Namespace: shown.Namespace, Name: shown.Name,
		Type: types.MergePatchType, Client: ofEgressIP}
	if shown.IsCluster() {
		patch.Plural = "clusteruserdefinednetworks"
	}
	if shown.Protected != should.Protected {
		body["metadata"].(map[string]any)["finalizers"] = allFinalizers(should.Finalizers, should.Protected)
	} else {
		patch.Subresource = "status"
		body["status"] = map[string]any{"conditions": statusConditions(should.Conditions)}
	}
	patch.Body = jsonBody(body)
	return &Write{Version: shown.Version, Urgent: patch.Subresource == "",
		Patch: func(time.Time) Patch { return patch }}
}

// writeNetworkDefinition creates, changes or deletes a definition; shown is nil where none exists.
func writeNetworkDefinition(shown, should *networks.Definition) *Write {
	patch := Patch{Plural: pluralDefinitions, Namespace: should.Namespace, Name: should.Name, Client: ofDefinition,
		Type: types.MergePatchType}
	w := &Write{Urgent: true, Patch: func(time.Time) Patch { return patch }}
	if shown == nil {
		patch.Created, patch.Body = true, jsonBody(manifestOf(should))
		return w
	}
	w.Version = shown.Version
	if should.Unwanted && !shown.Deleting {
		patch.Deleted = &metav1.Preconditions{UID: (*types.UID)(&shown.UID)}
	} else {
		patch.Body = jsonBody(definitionPatch(shown, should))
	}
	return w
}

// manifestOf returns the whole of a definition that is made for a request. The request owns the definition: Kubernetes
// deletes a definition whose owner is gone.
func manifestOf(d *networks.Definition) *cniv1.NetworkAttachmentDefinition {
	owned := true
	o := &cniv1.NetworkAttachmentDefinition{}
	o.APIVersion, o.Kind = cniv1.GroupVersion.String(), ref.NetworkAttachmentDefinition
	o.Namespace, o.Name, o.Finalizers = d.Namespace, d.Name, allFinalizers(d.Finalizers, d.Protected)
	o.Labels = map[string]string{v1.LabelUserDefinedNetwork: ""}
	o.Annotations = annotationsOf(d.Number)
	o.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1.GroupVersion.String(), Kind: d.Owner.Kind,
		Name: d.Owner.Name, UID: types.UID(d.Owner.UID), Controller: &owned, BlockOwnerDeletion: &owned}}
	o.Spec.Config = FormatNetworkConfig(d.Config, d.Key())
	return o
}

func annotationsOf(n networks.Number) map[string]string {
	if n.ID == 0 {
		return nil
	}
	return map[string]string{v1.AnnotationNetworkName: n.Name, v1.AnnotationNetworkID: strconv.Itoa(n.ID)}
}

// definitionPatch changes the number and the finalizers, and nothing else that an administrator wrote.
func definitionPatch(shown, should *networks.Definition) any {
	annotations := map[string]any{v1.AnnotationNetworkName: nil, v1.AnnotationNetworkID: nil}
	for key, value := range annotationsOf(should.Number) {
		annotations[key] = value
	}
	metadata := map[string]any{"resourceVersion": shown.Version, "annotations": annotations,
		"finalizers": allFinalizers(should.Finalizers, should.Protected)}
	if !should.Labelled || shown.Deleting {
		return map[string]any{"metadata": metadata}
	}
	whole := manifestOf(should)
	metadata["labels"], metadata["ownerReferences"] = whole.Labels, whole.OwnerReferences
	return map[string]any{"metadata": metadata, "spec": whole.Spec}
}

func jsonBody(v any) []byte { return []byte(toJSON(v)) }
