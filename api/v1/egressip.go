package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// EgressIP gives the traffic of selected pods to destinations outside the cluster a fixed source address.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=egressips,singular=egressip,shortName=eip
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="EgressIPs",type=string,JSONPath=`.spec.egressIPs`
// +kubebuilder:printcolumn:name="Assigned Node",type=string,JSONPath=`.status.assignedNodes`
// +kubebuilder:printcolumn:name="Assigned EgressIPs",type=string,JSONPath=`.status.assignedEgressIPs`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Leaving",type=string,JSONPath=`.status.leaving[*].node`,priority=1
// +kubebuilder:printcolumn:name="Overlapped",type=string,JSONPath=`.status.conditions[?(@.type=="Overlapped")].status`,priority=1
// +kubebuilder:printcolumn:name="Fallback",type=string,JSONPath=`.status.conditions[?(@.type=="Fallback")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type EgressIP struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec EgressIPSpec `json:"spec"`
	// +optional
	// +structType=atomic
	Status EgressIPStatus `json:"status,omitzero"`
}

// EgressIPList is a list of EgressIP.
//
// +kubebuilder:object:root=true
type EgressIPList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []EgressIP `json:"items"`
}

// EgressIPSpec says which addresses the traffic of which pods leaves with.
type EgressIPSpec struct {
	// EgressIPs are the addresses, IPv4 or IPv6 or both. Each is hosted by one egress node whose network contains it;
	// several addresses are hosted by as many nodes, and connections are spread over them.
	// At most 64, which also bounds the cost of the rules.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:XValidation:rule="isIP(self)",message="is not an IP address: write one IPv4 or IPv6 address, such as 172.18.0.33 or fd00:18::33, without prefix length, port or zone, and not IPv4-mapped"
	// +kubebuilder:validation:items:XValidation:rule="!isIP(self) || ip(self).isGlobalUnicast()",message="cannot be a source outside the node (loopback, unspecified, multicast, link-local or broadcast): use a free address of an egress node's network"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !isIP(x) || self.exists_one(y, isIP(y) && ip(x) == ip(y)))",message="names an address more than once, perhaps in two spellings: name each address once"
	EgressIPs []string `json:"egressIPs"`

	// NamespaceSelector selects the namespaces by their labels. It must be there; {} selects every namespace.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn', 'Exists', 'DoesNotExist'])",message="has an unknown operator: use In, NotIn, Exists or DoesNotExist"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, (e.operator in ['In', 'NotIn']) == (has(e.values) && size(e.values) > 0))",message="has values that do not go with the operator: give In and NotIn at least one value, Exists and DoesNotExist none"
	NamespaceSelector metav1.LabelSelector `json:"namespaceSelector"`

	// PodSelector selects pods, by their labels, in the selected namespaces. Absent or {}: all pods in them.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn', 'Exists', 'DoesNotExist'])",message="has an unknown operator: use In, NotIn, Exists or DoesNotExist"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, (e.operator in ['In', 'NotIn']) == (has(e.values) && size(e.values) > 0))",message="has values that do not go with the operator: give In and NotIn at least one value, Exists and DoesNotExist none"
	PodSelector metav1.LabelSelector `json:"podSelector,omitzero"`

	// EgressNodeSelector selects, by their labels, the egress nodes that may host the addresses. A node must have the
	// label k8s.ovn.org/egress-assignable besides. Absent or {}: all egress nodes. An address leaves a node that no
	// longer matches as it leaves one that loses that label; nothing moves to one that begins to match.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn', 'Exists', 'DoesNotExist'])",message="has an unknown operator: use In, NotIn, Exists or DoesNotExist"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, (e.operator in ['In', 'NotIn']) == (has(e.values) && size(e.values) > 0))",message="has values that do not go with the operator: give In and NotIn at least one value, Exists and DoesNotExist none"
	EgressNodeSelector metav1.LabelSelector `json:"egressNodeSelector,omitzero"`

	// TrafficSelector selects EgressIPTraffics by their labels. Selected pods leave with an address of this object to
	// the networks of those alone, and elsewhere with their node's address. Absent: pods leave with it everywhere. {}
	// selects every EgressIPTraffic; a selector that selects none, or none with networks, leaves pods their node's
	// address. Of several EgressIPs that select a pod, those that share no destination serve it side by side; one that
	// shares a destination with an older one stands by, as a whole.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn', 'Exists', 'DoesNotExist'])",message="has an unknown operator: use In, NotIn, Exists or DoesNotExist"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, (e.operator in ['In', 'NotIn']) == (has(e.values) && size(e.values) > 0))",message="has values that do not go with the operator: give In and NotIn at least one value, Exists and DoesNotExist none"
	TrafficSelector *metav1.LabelSelector `json:"trafficSelector,omitempty"`
}

// EgressIPStatus says where the addresses are, as the controller decided and as the nodes report.
type EgressIPStatus struct {
	// Items says which node should hold which address. That node's EgressNode says which it holds.
	//
	// +optional
	// +listType=atomic
	Items []EgressIPStatusItem `json:"items,omitempty"`

	// Leaving lists former holders that are to go on translating to an address, without answering for it once its
	// successor does. A node that is in neither items nor leaving has nothing to do with the address any more. The
	// controller takes a node off when the successor holds the address and every node with selected pods has said that
	// it no longer steers to it.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Leaving []EgressIPLeaving `json:"leaving,omitempty"`

	// Granted lists addresses of the spec that have, or once had, a node. The EgressIP keeps them, with a node or
	// without one: neither what a node says of itself nor a Service takes one. It ends with the address in the spec.
	//
	// +optional
	// +listType=atomic
	Granted []string `json:"granted,omitempty"`

	// AssignedNodes are the nodes of items, separated by commas, for printing.
	//
	// +optional
	AssignedNodes string `json:"assignedNodes,omitempty"`

	// AssignedEgressIPs are the addresses of items, in the same order as assignedNodes, separated by commas, for
	// printing.
	//
	// +optional
	AssignedEgressIPs string `json:"assignedEgressIPs,omitempty"`

	// InForce lists the families, IPv4 and IPv6, in which a selected pod leaves with an egress IP or not at all. It is
	// what the nodes go by; the condition InForce says the same to people.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	InForce []IPFamily `json:"inForce,omitempty"`

	// Conditions are Assigned, Ready, InForce, Fallback and Overlapped; TrafficSelected where there is a
	// trafficSelector.
	//
	// +optional
	// +listType=atomic
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// EgressIPStatusItem is one address and the node that hosts it.
type EgressIPStatusItem struct {
	// Node is the name of the node.
	//
	// +required
	Node string `json:"node"`
	// EgressIP is the address.
	//
	// +required
	EgressIP string `json:"egressIP"`
	// Since is when the controller gave the address to the node. No two assignments of an address have the same time.
	// Nodes repeat it in their reports, so that a report of an earlier assignment does not count for this one. Absent:
	// any report counts.
	//
	// +optional
	Since metav1.MicroTime `json:"since,omitzero"`
}

// EgressIPLeaving is one address that is moving away from a node, or is given up there.
type EgressIPLeaving struct {
	// Node is the name of the node.
	//
	// +required
	Node string `json:"node"`
	// EgressIP is the address.
	//
	// +required
	EgressIP string `json:"egressIP"`
	// Since is when the controller decided it.
	//
	// +required
	Since metav1.MicroTime `json:"since"`
	// Given is what since was in items while the node was to hold the address. It is that again if the node gets it
	// back.
	//
	// +optional
	Given metav1.MicroTime `json:"given,omitzero"`
}

// IPFamily is IPv4 or IPv6.
//
// +kubebuilder:validation:Enum=IPv4;IPv6
type IPFamily string

// The two families.
const (
	IPv4 IPFamily = "IPv4"
	IPv6 IPFamily = "IPv6"
)
