package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// EgressService has the pods behind the LoadBalancer Service of the same name leave the cluster with that Service's
// ingress IP, through one node, or through a routing table of hosts, or both.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=egressservices,singular=egressservice
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Assigned Host",type=string,JSONPath=`.status.host`
// +kubebuilder:printcolumn:name="Source IPs",type=string,JSONPath=`.status.assignedSourceIPs`
// +kubebuilder:printcolumn:name="Network",type=string,JSONPath=`.spec.network`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Leaving",type=string,JSONPath=`.status.leaving[*].node`,priority=1
// +kubebuilder:printcolumn:name="Overlapped",type=string,JSONPath=`.status.conditions[?(@.type=="Overlapped")].status`,priority=1
// +kubebuilder:printcolumn:name="Fallback",type=string,JSONPath=`.status.conditions[?(@.type=="Fallback")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type EgressService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	// +kubebuilder:default={}
	Spec EgressServiceSpec `json:"spec,omitzero"`
	// +optional
	// +structType=atomic
	Status EgressServiceStatus `json:"status,omitzero"`
}

// EgressServiceList is a list of EgressService.
//
// +kubebuilder:object:root=true
type EgressServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []EgressService `json:"items"`
}

// EgressServiceSpec says what the pods leave with and through.
type EgressServiceSpec struct {
	// SourceIPBy says what decides about the source address of the pods' packets to the outside. LoadBalancerIP: it is
	// the ingress IP of the Service, and they leave through one node, status.host. Network: it is that of the link by
	// which they leave the pod's own node. Absent: LoadBalancerIP.
	//
	// +optional
	// +kubebuilder:default=LoadBalancerIP
	SourceIPBy SourceIPMode `json:"sourceIPBy,omitempty"`

	// NodeSelector selects, by their labels, the nodes that can be status.host. Absent or {}: all nodes. The node
	// changes when it no longer matches; nothing moves to one that begins to match. With sourceIPBy Network it has no
	// meaning.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn', 'Exists', 'DoesNotExist'])",message="has an unknown operator: use In, NotIn, Exists or DoesNotExist"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, (e.operator in ['In', 'NotIn']) == (has(e.values) && size(e.values) > 0))",message="has values that do not go with the operator: give In and NotIn at least one value, Exists and DoesNotExist none"
	NodeSelector metav1.LabelSelector `json:"nodeSelector,omitzero"`

	// Network is the routing table of hosts that the packets are routed by, and the replies of connections from
	// outside to the Service: its number, or the name of a VRF or of a table in rt_tables. Absent: the host's own
	// routing. A host needs it on status.host, or with sourceIPBy Network wherever the pods run.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[0-9A-Za-z_][0-9A-Za-z_.-]*$')",message="is no routing table: write its number, such as 100, or the name of a VRF or of a table in rt_tables, of letters, digits, '_', '.' and '-'"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[0-9]+$') || self.matches('^[1-9][0-9]{0,9}$') && int(self) < 2097152",message="is no number of a routing table: write one from 1 to 2097151 without leading zeros"
	// +kubebuilder:validation:XValidation:rule="!(self in ['local', '255', '284279'])",message="is a routing table with the host's own addresses, or Egret's: name another"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^0[xX]')",message="is ambiguous: write the number of the routing table as a decimal"
	Network string `json:"network,omitempty"`
}

// SourceIPMode says what decides about the source address.
//
// +kubebuilder:validation:Enum=LoadBalancerIP;Network
type SourceIPMode string

// The two of them.
const (
	SourceIPLoadBalancer SourceIPMode = "LoadBalancerIP"
	SourceIPNetwork      SourceIPMode = "Network"
)

// EgressServiceHostAll is status.host with sourceIPBy Network: each node is the host of the pods that it runs.
const EgressServiceHostAll = "ALL"

// EgressServiceStatus says where the pods leave, as the controller decided and as the nodes report.
type EgressServiceStatus struct {
	// Host is the name of the node through which the pods leave, which has the label
	// egress-service.k8s.ovn.org/<namespace>-<name>: "". With sourceIPBy Network it is ALL. Empty: nothing is
	// configured, and condition Ready says why.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host"`

	// SourceIPs are the addresses that the host must translate to, at most one a family.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	SourceIPs []string `json:"sourceIPs,omitempty"`

	// AssignedSourceIPs are the same, separated by commas, for printing.
	//
	// +optional
	AssignedSourceIPs string `json:"assignedSourceIPs,omitempty"`

	// Items say since when the host has each of sourceIPs; with host ALL, each unspecified address. An entry of another
	// node or address counts for nothing.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	Items []EgressServiceStatusItem `json:"items,omitempty"`

	// Leaving lists former hosts that are to go on translating, as that of an EgressIP does.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Leaving []EgressServiceLeaving `json:"leaving,omitempty"`

	// InForce lists the families, IPv4 and IPv6, in which the pods leave with a source IP of this object or not at all,
	// as that of an EgressIP does.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	InForce []IPFamily `json:"inForce,omitempty"`

	// Conditions are Assigned, Ready, Overlapped and Fallback.
	//
	// +optional
	// +listType=atomic
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// EgressServiceStatusItem is one source address, and the host that has it.
type EgressServiceStatusItem struct {
	// Node is the name of the node, or ALL.
	//
	// +required
	Node string `json:"node"`
	// SourceIP is the address.
	//
	// +required
	SourceIP string `json:"sourceIP"`
	// Since is when the controller gave the address to the node, as in the items of an EgressIP.
	//
	// +required
	Since metav1.MicroTime `json:"since"`
}

// EgressServiceLeaving is one source address that is moving away from a node.
type EgressServiceLeaving struct {
	// Node is the name of the node.
	//
	// +required
	Node string `json:"node"`
	// SourceIP is the address.
	//
	// +required
	SourceIP string `json:"sourceIP"`
	// Since is when the controller decided it.
	//
	// +required
	Since metav1.MicroTime `json:"since"`
	// Given is what since was in items while the node was the host. It is that again if the node becomes the host
	// again.
	//
	// +optional
	Given metav1.MicroTime `json:"given,omitzero"`
}
