package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FormatVersion is what agents write as the form of an EgressNode. The form never changes: the first agents take a node
// with a higher number as holding nothing. New fields stand beside old ones, and readers take what they know.
const FormatVersion = 1

// FormatForControllers is written in its place by an agent whose report concerns no other node: the node holds nothing
// and cannot be given egress IPs. Agents leave such EgressNodes out of what they follow. An agent that does not know
// this writes FormatVersion, so that its reports are followed by all.
const FormatForControllers = 2

// The bounds in the schema of EgressNodeStatus. The API server refuses a report with more as a whole.
const (
	MaxHolding       = 8192
	MaxProblems      = 256
	MaxProblemLength = 1024 // characters
	MaxConflicts     = 256
	MaxSteers        = 8192
	MaxAgentVersion  = 128 // characters
	MaxReason        = 64  // characters
)

// AnswersMark ends the agentVersion of an agent that answers other agents at agentPort.
const AnswersMark = "+answers"

// MaxStatusBytes is what a status may take as JSON. etcd takes 1.5 MiB a request by default, and the metadata have the
// rest.
const MaxStatusBytes = 1300 << 10

// EgressNode says what one node holds. It has the node's name and is written by that node's agent alone, which makes
// the Node its owner, so that it goes when the Node goes. Status is no subresource: one write makes or changes the
// whole.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=egressnodes,singular=egressnode,shortName=egn
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:selectablefield:JSONPath=`.status.formatVersion`
// +kubebuilder:printcolumn:name="Holding",type=integer,JSONPath=`.status.holdingCount`
// +kubebuilder:printcolumn:name="Egress IPs",type=string,JSONPath=`.status.heldIPs`
// +kubebuilder:printcolumn:name="BootID",type=string,JSONPath=`.status.bootID`,priority=1
// +kubebuilder:printcolumn:name="Conflicts",type=string,JSONPath=`.status.conflicts[*].ip`,priority=1
// +kubebuilder:printcolumn:name="Problems",type=string,JSONPath=`.status.problems`,priority=1
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.agentVersion`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type EgressNode struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	// +structType=atomic
	Status EgressNodeStatus `json:"status"`
}

// EgressNodeList is a list of EgressNode.
//
// +kubebuilder:object:root=true
type EgressNodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []EgressNode `json:"items"`
}

// EgressNodeStatus is what the node's targets hold, read back from them.
//
// +kubebuilder:validation:XValidation:rule="self.holdingCount == (has(self.holding) ? size(self.holding) : 0)",message="holdingCount must be the number of items of holding"
type EgressNodeStatus struct {
	// FormatVersion is 1, or 2 where the node holds nothing and cannot be given egress IPs: other nodes' agents do not
	// follow this then. The form is the same.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	FormatVersion int32 `json:"formatVersion"`

	// BootID is the kernel's boot id (/proc/sys/kernel/random/boot_id) when this was written. A node whose
	// status.nodeInfo.bootID is another one has rebooted since, and holds nothing of this.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z._-]+$`
	BootID string `json:"bootID"`

	// AgentVersion is the version of the agent that wrote this. AnswersMark at its end says that agentPort is that
	// agent's.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	AgentVersion string `json:"agentVersion,omitempty"`

	// Holding are the egress IPs that the node's targets translate to and that it answers for.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8192
	Holding []Held `json:"holding,omitempty"`

	// HoldingCount is the number of items of holding, for printing.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=8192
	HoldingCount int32 `json:"holdingCount"`

	// HeldIPs are the addresses of holding, separated by commas, for printing.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=376832
	// +kubebuilder:validation:Pattern=`^[0-9a-f:.,]*$`
	HeldIPs string `json:"heldIPs,omitempty"`

	// HeldAddresses are the addresses that the node holds for objects of other kinds than EgressIP, each with the
	// object and the network that it is an egress address of. Agents of the previous version repeat here what holding
	// says.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8192
	HeldAddresses []HeldAddress `json:"heldAddresses,omitempty"`

	// Steers says, for each egress IP of which pods run here, to which node those pods' packets are led, once OVS does
	// so. An EgressIP whose pods here are dropped is in objectSteers; one whose pods keep their node's address is in
	// neither.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8192
	Steers []Steered `json:"steers,omitempty"`

	// ObjectSteers is the same as steers, for objects of other kinds than EgressIP. An EgressService whose pods leave
	// by the network of their own node is in it with the unspecified address and this node. An object of either kind
	// that has what its pods here send dropped in a family is in it with that family's unspecified address and no node.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8192
	ObjectSteers []ObjectSteered `json:"objectSteers,omitempty"`

	// Problems are what keeps the node from holding what it should, one sentence each.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=1024
	Problems []string `json:"problems,omitempty"`

	// ObjectProblems are the same as problems, each with the object that it is about.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	ObjectProblems []Problem `json:"objectProblems,omitempty"`

	// AgentPort is the TCP port, at the node's management port, where the agent tells other agents whether it has
	// followed what they have seen of the API: before a pod's packets are led to this node, the pod's own node asks. An
	// agent of a version that does not know this field leaves it as it is; it counts where agentVersion ends in
	// AnswersMark.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	AgentPort int32 `json:"agentPort,omitempty"`

	// Conflicts are held addresses that another machine on the network says it has, as long as it said so lately.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Conflicts []Conflict `json:"conflicts,omitempty"`
}

// Conflict is one held address that another machine says it has.
type Conflict struct {
	// EgressIP is the name of the EgressIP object.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	EgressIP string `json:"egressIP"`
	// IP is the address in its canonical form.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="is not an IP address"
	IP string `json:"ip"`
	// MAC is the hardware address that the other machine names for it.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=17
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{2}(:[0-9a-f]{2}){5}$`
	MAC string `json:"mac"`
}

// Held is one egress IP that the node holds.
type Held struct {
	// EgressIP is the name of the EgressIP object.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	EgressIP string `json:"egressIP"`
	// IP is the address in its canonical form.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="is not an IP address"
	IP string `json:"ip"`
	// Since repeats the assignment time of the address from the object's status. Absent: the status has none, or
	// this object has no room for it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=27
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$`
	Since string `json:"since,omitempty"`
	// UID is the start of the object's UID. Absent: since is absent, or an earlier agent wrote this.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z-]+$`
	UID string `json:"uid,omitempty"`
}

// HeldAddress is an address that the node translates to and answers for, on behalf of an object.
type HeldAddress struct {
	// Kind is the object's kind, such as EgressIP.
	//
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Z][0-9A-Za-z]*$`
	Kind string `json:"kind"`
	// Namespace is the object's namespace, if its kind has namespaces.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
	// Name is the object's name.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
	// Network is the network of the pods whose source the address is: default, or a user-defined one.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-_a-z0-9.]*[a-z0-9])?$`
	Network string `json:"network"`
	// IP is the address in its canonical form.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="is not an IP address"
	IP string `json:"ip"`
	// Since repeats the assignment time of the address from the object's status. Absent: the status has none, or
	// this object has no room for it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=27
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$`
	Since string `json:"since,omitempty"`
	// UID is the start of the object's UID. Absent: since is absent, or an earlier agent wrote this.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z-]+$`
	UID string `json:"uid,omitempty"`
}

// Problem is what keeps the node from doing something for an object.
type Problem struct {
	// Kind is the object's kind: Node where it is the node itself, Network for a subnet of one of its links.
	//
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Z][0-9A-Za-z]*$`
	Kind string `json:"kind"`
	// Namespace is the object's namespace, if its kind has namespaces.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
	// Name is the object's name; of a Network, its prefix.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9:]([-a-z0-9.:/]*[a-z0-9])?$`
	Name string `json:"name"`
	// Reason says in one word what kind of problem it is.
	//
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Z][0-9A-Za-z]*$`
	Reason string `json:"reason"`
	// Message tells people the fault and the remedy, in one sentence.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// Steered is one egress IP, and the node that this node leads its own pods' packets to for it.
type Steered struct {
	// EgressIP is the name of the EgressIP object.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	EgressIP string `json:"egressIP"`
	// IP is the address in its canonical form.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="is not an IP address"
	IP string `json:"ip"`
	// Node is the name of the node that holds it.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Node string `json:"node"`
	// Since repeats the assignment time of the address from the object's status. Absent: the status has none, or
	// this object has no room for it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=27
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$`
	Since string `json:"since,omitempty"`
}

// ObjectSteered is one egress address of an object, and the node that this node leads its own pods' packets to for it.
type ObjectSteered struct {
	// Kind is the object's kind, such as EgressService.
	//
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Z][0-9A-Za-z]*$`
	Kind string `json:"kind"`
	// Namespace is the object's namespace, if its kind has namespaces.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
	// Name is the object's name.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
	// IP is the address in its canonical form.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="is not an IP address"
	IP string `json:"ip"`
	// Node is the name of the node that holds it; absent: packets of pods are dropped.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$`
	Node string `json:"node,omitempty"`
	// Since repeats the assignment time of the address from the object's status. Absent: the status has none, or
	// this object has no room for it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=27
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$`
	Since string `json:"since,omitempty"`
}
