package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is k8s.cni.cncf.io/v1.
var GroupVersion = schema.GroupVersion{Group: "k8s.cni.cncf.io", Version: "v1"}

// AddToScheme registers the types of this package with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &NetworkAttachmentDefinition{}, &NetworkAttachmentDefinitionList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// NetworkAttachmentDefinition describes a network for pods of its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=network-attachment-definitions,singular=network-attachment-definition,shortName=net-attach-def
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
type NetworkAttachmentDefinition struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec NetworkAttachmentDefinitionSpec `json:"spec,omitzero"`
}

// NetworkAttachmentDefinitionList is a list of NetworkAttachmentDefinition.
//
// +kubebuilder:object:root=true
type NetworkAttachmentDefinitionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NetworkAttachmentDefinition `json:"items"`
}

// NetworkAttachmentDefinitionSpec has the network's configuration.
type NetworkAttachmentDefinitionSpec struct {
	// Config is a CNI configuration as JSON. Egret serves those of type ovn-k8s-cni-overlay with topology layer3 and
	// role primary.
	//
	// +optional
	Config string `json:"config,omitempty"`
}
