package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// EgressIPTraffic names networks outside the cluster. EgressIPs select it by its labels, and serve their pods to these
// networks alone.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=egressiptraffics,singular=egressiptraffic,shortName=eipt
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="DestinationNetworks",type=string,JSONPath=`.spec.destinationNetworks`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type EgressIPTraffic struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec EgressIPTrafficSpec `json:"spec"`
}

// EgressIPTrafficList is a list of EgressIPTraffic.
//
// +kubebuilder:object:root=true
type EgressIPTrafficList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []EgressIPTraffic `json:"items"`
}

// EgressIPTrafficSpec says which networks.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type EgressIPTrafficSpec struct {
	// DestinationNetworks are prefixes, IPv4 or IPv6 or both: 10.0.0.0/8, fd00:20::/64. Bits beyond a prefix's length
	// do not count, nor does it matter whether prefixes repeat or contain each other. An empty list names no network.
	// At most 10,000; an EgressIP can select several EgressIPTraffics.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	DestinationNetworks []CIDR `json:"destinationNetworks,omitzero"`
}

// CIDR is an IPv4 or IPv6 prefix.
//
// +kubebuilder:validation:MaxLength=43
// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="is not a network: write an IPv4 or IPv6 prefix, such as 10.0.0.0/8 or fd00:20::/64, not IPv4-mapped"
type CIDR string
