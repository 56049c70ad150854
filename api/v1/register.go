package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is k8s.ovn.org/v1.
var GroupVersion = schema.GroupVersion{Group: "k8s.ovn.org", Version: "v1"}

// SchemeGroupVersion is GroupVersion by the name that generated code expects.
var SchemeGroupVersion = GroupVersion

// SchemeBuilder registers the types of this package with a scheme.
var SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme registers the types of this package with a scheme.
var AddToScheme = SchemeBuilder.AddToScheme

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &EgressIP{}, &EgressIPList{}, &EgressIPTraffic{}, &EgressIPTrafficList{},
		&EgressService{}, &EgressServiceList{}, &UserDefinedNetwork{}, &UserDefinedNetworkList{},
		&ClusterUserDefinedNetwork{}, &ClusterUserDefinedNetworkList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
