package kube

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cniv1 "github.com/egret-net/egret/api/cni/v1"
	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/networks"
	"github.com/egret-net/egret/internal/world"
)

// NetworkDefinition is a NetworkAttachmentDefinition as the world has it.
func NetworkDefinition(o *cniv1.NetworkAttachmentDefinition) *networks.Definition {
	d := &networks.Definition{
		Namespace: o.Namespace, Name: o.Name, UID: string(o.UID), Version: o.ResourceVersion,
		Created: o.CreationTimestamp.Time, Deleting: o.DeletionTimestamp != nil,
		Protected: isProtected(o), Finalizers: othersFinalizers(o),
	}
	_, d.Labelled = o.Labels[v1.LabelUserDefinedNetwork]
	if owner := metav1.GetControllerOf(o); owner != nil && owner.APIVersion == v1.GroupVersion.String() {
		d.Owner = networks.Owner{Kind: owner.Kind, Name: owner.Name, UID: string(owner.UID)}
	}
	var err error
	if d.Config, d.Served, err = parseNetworkConfig(o.Spec.Config, d.Key()); err != nil {
		d.Problem = err.Error()
	}
	id, err := strconv.Atoi(o.Annotations[v1.AnnotationNetworkID])
	if err == nil && id > 0 && id <= world.MaxNetworkID {
		d.Number = networks.Number{ID: id, Name: o.Annotations[v1.AnnotationNetworkName]}
	}
	return d
}
