package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// UserDefinedNetwork asks for a network of the pods of its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=userdefinednetworks,singular=userdefinednetwork,shortName=udn
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Topology",type=string,JSONPath=`.spec.topology`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.spec.*.role`
// +kubebuilder:printcolumn:name="Subnets",type=string,JSONPath=`.spec.layer3.subnets`
// +kubebuilder:printcolumn:name="Created",type=string,JSONPath=`.status.conditions[?(@.type=="NetworkCreated")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="NetworkCreated")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type UserDefinedNetwork struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.layer3) == (self.topology == 'Layer3')",message="needs layer3 with topology Layer3, and cannot have it with another"
	// +kubebuilder:validation:XValidation:rule="has(self.layer2) == (self.topology == 'Layer2')",message="needs layer2 with topology Layer2, and cannot have it with another"
	Spec UserDefinedNetworkSpec `json:"spec"`
	// +optional
	// +structType=atomic
	Status UserDefinedNetworkStatus `json:"status,omitzero"`
}

// UserDefinedNetworkList is a list of UserDefinedNetwork.
//
// +kubebuilder:object:root=true
type UserDefinedNetworkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []UserDefinedNetwork `json:"items"`
}

// UserDefinedNetworkSpec describes the network.
type UserDefinedNetworkSpec struct {
	// Topology is Layer3: each node has a subnet of its own, and nodes route between them. Layer2 is accepted and not
	// served: condition NetworkCreated is False.
	//
	// +required
	// +kubebuilder:validation:Enum=Layer2;Layer3
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot change: delete the network and make another"
	Topology NetworkTopology `json:"topology"`

	// Layer3 describes a network of topology Layer3.
	//
	// +optional
	Layer3 *Layer3Config `json:"layer3,omitempty"`

	// Layer2 describes a network of topology Layer2. Of its fields Egret reads the role alone.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot change: delete the network and make another"
	Layer2 *UnservedConfig `json:"layer2,omitempty"`
}

// UserDefinedNetworkStatus says what became of the network.
type UserDefinedNetworkStatus struct {
	// Conditions are NetworkCreated.
	//
	// +optional
	// +listType=atomic
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterUserDefinedNetwork asks for one network of the pods of all namespaces that it selects.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=clusteruserdefinednetworks,singular=clusteruserdefinednetwork,shortName=cudn
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Topology",type=string,JSONPath=`.spec.network.topology`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.spec.network.*.role`
// +kubebuilder:printcolumn:name="Subnets",type=string,JSONPath=`.spec.network.layer3.subnets`
// +kubebuilder:printcolumn:name="Created",type=string,JSONPath=`.status.conditions[?(@.type=="NetworkCreated")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="NetworkCreated")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterUserDefinedNetwork struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec ClusterUserDefinedNetworkSpec `json:"spec"`
	// +optional
	// +structType=atomic
	Status UserDefinedNetworkStatus `json:"status,omitzero"`
}

// ClusterUserDefinedNetworkList is a list of ClusterUserDefinedNetwork.
//
// +kubebuilder:object:root=true
type ClusterUserDefinedNetworkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterUserDefinedNetwork `json:"items"`
}

// ClusterUserDefinedNetworkSpec describes the network, and whose it is.
type ClusterUserDefinedNetworkSpec struct {
	// NamespaceSelector selects the namespaces by their labels. {} selects every namespace.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn', 'Exists', 'DoesNotExist'])",message="has an unknown operator: use In, NotIn, Exists or DoesNotExist"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, (e.operator in ['In', 'NotIn']) == (has(e.values) && size(e.values) > 0))",message="has values that do not go with the operator: give In and NotIn at least one value, Exists and DoesNotExist none"
	NamespaceSelector metav1.LabelSelector `json:"namespaceSelector"`

	// Network describes the network. It cannot change, but for subnets that are added.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.layer3) == (self.topology == 'Layer3')",message="needs layer3 with topology Layer3, and cannot have it with another"
	// +kubebuilder:validation:XValidation:rule="has(self.layer2) == (self.topology == 'Layer2')",message="needs layer2 with topology Layer2, and cannot have it with another"
	// +kubebuilder:validation:XValidation:rule="has(self.localnet) == (self.topology == 'Localnet')",message="needs localnet with topology Localnet, and cannot have it with another"
	// +kubebuilder:validation:XValidation:rule="has(self.noOverlay) == (has(self.transport) && self.transport == 'NoOverlay')",message="needs noOverlay with transport NoOverlay, and cannot have it with another"
	// +kubebuilder:validation:XValidation:rule="has(self.evpn) == (has(self.transport) && self.transport == 'EVPN')",message="needs evpn with transport EVPN, and cannot have it with another"
	// +kubebuilder:validation:XValidation:rule="has(self.transport) == has(oldSelf.transport)",message="cannot change transport: delete the network and make another"
	Network NetworkSpec `json:"network"`
}

// NetworkSpec describes a network of several namespaces.
type NetworkSpec struct {
	// Topology is Layer3: each node has a subnet of its own, and nodes route between them. Layer2 and Localnet are
	// accepted and not served: condition NetworkCreated is False.
	//
	// +required
	// +kubebuilder:validation:Enum=Layer2;Layer3;Localnet
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot change: delete the network and make another"
	Topology NetworkTopology `json:"topology"`

	// Layer3 describes a network of topology Layer3.
	//
	// +optional
	Layer3 *Layer3Config `json:"layer3,omitempty"`

	// Layer2 describes a network of topology Layer2. Of its fields Egret reads the role alone.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot change: delete the network and make another"
	Layer2 *UnservedConfig `json:"layer2,omitempty"`

	// Localnet describes a network of topology Localnet. Of its fields Egret reads the role alone.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot change: delete the network and make another"
	Localnet *UnservedConfig `json:"localnet,omitempty"`

	// Transport is how packets go from node to node; absent or Geneve: in Geneve tunnels. NoOverlay and EVPN are
	// accepted and not served: condition NetworkCreated is False.
	//
	// +optional
	// +kubebuilder:validation:Enum=Geneve;NoOverlay;EVPN
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot change: delete the network and make another"
	Transport NetworkTransport `json:"transport,omitempty"`

	// NoOverlay describes transport NoOverlay. Egret reads nothing of it.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	NoOverlay *UnservedTransport `json:"noOverlay,omitempty"`

	// EVPN describes transport EVPN. Egret reads nothing of it.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	EVPN *UnservedTransport `json:"evpn,omitempty"`
}

// NetworkTopology says how a network is built.
type NetworkTopology string

// The topologies.
const (
	TopologyLayer2   NetworkTopology = "Layer2"
	TopologyLayer3   NetworkTopology = "Layer3"
	TopologyLocalnet NetworkTopology = "Localnet"
)

// NetworkTransport says how packets go from node to node.
type NetworkTransport string

// TransportGeneve is what absence means, too.
const TransportGeneve NetworkTransport = "Geneve"

// NetworkRole says what a network is to its pods. Primary: all that they send, but for what the kubelet asks them, goes
// by it. Secondary is accepted and not served: condition NetworkCreated is False.
//
// +kubebuilder:validation:Enum=Primary;Secondary
type NetworkRole string

// The roles.
const (
	RolePrimary   NetworkRole = "Primary"
	RoleSecondary NetworkRole = "Secondary"
)

// UnservedConfig is a network of a topology that Egret does not serve. Its other fields stay as they are written.
//
// +kubebuilder:pruning:PreserveUnknownFields
type UnservedConfig struct {
	// Role is what the network is to its pods.
	//
	// +required
	Role NetworkRole `json:"role"`
}

// UnservedTransport is a transport that Egret does not serve.
type UnservedTransport struct{}

// Layer3Config describes a network of which each node has a subnet.
//
// +kubebuilder:validation:XValidation:rule="!has(self.joinSubnets) || self.role == 'Primary'",message="can have joinSubnets with role Primary only"
// +kubebuilder:validation:XValidation:rule="self.role == 'Primary' || self.subnets == oldSelf.subnets",message="cannot change its subnets with role Secondary"
// +kubebuilder:validation:XValidation:rule="self.role == 'Primary' || self.subnets.size() <= 2",message="can have two subnets at most with role Secondary"
// +kubebuilder:validation:XValidation:rule="self.role == 'Primary' || self.subnets.size() != 2 || !isCIDR(self.subnets[0].cidr) || !isCIDR(self.subnets[1].cidr) || cidr(self.subnets[0].cidr).ip().family() != cidr(self.subnets[1].cidr).ip().family()",message="can have two subnets with role Secondary only if one is IPv4 and the other IPv6"
// +kubebuilder:validation:XValidation:rule="!has(self.mtu) || self.mtu >= 1280 || !self.subnets.exists(s, isCIDR(s.cidr) && cidr(s.cidr).ip().family() == 6)",message="needs an mtu of at least 1280 with an IPv6 subnet (RFC 8200)"
// +kubebuilder:validation:XValidation:rule="has(self.mtu) == has(oldSelf.mtu) && has(self.joinSubnets) == has(oldSelf.joinSubnets)",message="cannot change mtu or joinSubnets: delete the network and make another"
// +kubebuilder:validation:XValidation:rule="oldSelf.subnets.all(o, self.subnets.exists(s, s == o))",message="cannot lose a subnet, nor change its hostSubnet: pods may have addresses of it. Subnets can be added"
// +kubebuilder:validation:XValidation:rule="self.subnets.size() > 64 || !self.subnets.exists(s, self.subnets.exists(t, s != t && cidr(s.cidr).containsCIDR(t.cidr)))",message="has subnets that overlap: name disjoint ones"
// +kubebuilder:validation:XValidation:rule="self.subnets.size() > 64 || self.subnets.all(s, self.subnets.exists_one(t, t.cidr == s.cidr))",message="names a subnet more than once"
// +kubebuilder:validation:XValidation:rule="self.subnets.size() > 64 || self.subnets.all(s, self.subnets.all(t, (has(s.hostSubnet) ? s.hostSubnet : 0) == (has(t.hostSubnet) ? t.hostSubnet : 0) || cidr(s.cidr).ip().family() != cidr(t.cidr).ip().family()))",message="needs the same hostSubnet in all subnets of a family"
type Layer3Config struct {
	// Role is what the network is to its pods.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot change: delete the network and make another"
	Role NetworkRole `json:"role"`

	// MTU of the pods' interfaces, in octets. Absent: the cluster's.
	//
	// +optional
	// +kubebuilder:validation:Minimum=576
	// +kubebuilder:validation:Maximum=65536
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot change: delete the network and make another"
	MTU int32 `json:"mtu,omitempty"`

	// Subnets are the ranges that the nodes' subnets are cut from. Those of two networks may overlap, those of one may
	// not. They can be added, and never removed. More than 64 are compared with each other by the controller alone,
	// which says in condition NetworkCreated what is wrong with them.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=400
	Subnets []Layer3Subnet `json:"subnets"`

	// JoinSubnets are the addresses between the network's routers, one a family. Absent: 100.65.0.0/16 and fd99::/64.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot change: delete the network and make another"
	JoinSubnets DualStackCIDRs `json:"joinSubnets,omitempty"`
}

// Layer3Subnet is a range that nodes' subnets are cut from.
//
// +kubebuilder:validation:XValidation:rule="!has(self.hostSubnet) || !isCIDR(self.cidr) || self.hostSubnet > cidr(self.cidr).prefixLength()",message="needs a hostSubnet longer than the prefix of cidr"
// +kubebuilder:validation:XValidation:rule="!has(self.hostSubnet) || !isCIDR(self.cidr) || cidr(self.cidr).ip().family() == 6 || self.hostSubnet < 32",message="needs a hostSubnet below 32 in an IPv4 subnet"
type Layer3Subnet struct {
	// CIDR is the range, such as 10.128.0.0/16.
	//
	// +required
	CIDR CIDR `json:"cidr"`

	// HostSubnet is the prefix length of a node's subnet. Absent: 24 for IPv4, 64 for IPv6.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=127
	HostSubnet int32 `json:"hostSubnet,omitempty"`
}

// DualStackCIDRs are one range a family.
//
// +listType=atomic
// +kubebuilder:validation:MinItems=1
// +kubebuilder:validation:MaxItems=2
// +kubebuilder:validation:XValidation:rule="size(self) != 2 || !isCIDR(self[0]) || !isCIDR(self[1]) || cidr(self[0]).ip().family() != cidr(self[1]).ip().family()",message="has two ranges of one family: name one IPv4 and one IPv6 range"
type DualStackCIDRs []CIDR
