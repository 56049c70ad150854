package v1

// Condition types of an EgressIP. Each carries observedGeneration.
const (
	// ConditionAssigned is True when every address of the spec has a node.
	ConditionAssigned = "Assigned"

	// ConditionReady is True when every address of the spec has a node and that node's EgressNode says that it holds
	// the address: selected pods leave with it now.
	ConditionReady = "Ready"

	// ConditionInForce is True when in every family that the object has addresses of a selected pod leaves with an
	// egress IP or not at all; the message says so of each family, and status.inForce lists those of which it is so. In
	// a family that begins when a node first holds one of the addresses, and ends only by the controller's decision
	// that no node can host any of them; losing the node does not end it.
	ConditionInForce = "InForce"

	// ConditionFallback is True while, in a family that the object has addresses of, none of them has a node. Its
	// reason is what becomes of the traffic of selected pods in that family, by annotation
	// egret.k8s.ovn.org/when-unassigned, by what nodes have confirmed, and by who else decides about these pods:
	// NodeIP, WaitingForNode, Drop, ServedByOther or DroppedByOther. The message has the same in words.
	ConditionFallback = "Fallback"

	// ConditionOverlapped is True while another EgressIP serves pods that this one selects: of those that have a node,
	// the one with the oldest creationTimestamp serves a pod, then the first by name. The message has the number of
	// pods that this one stands by for, and who serves them. When that one goes, this one serves them at once.
	ConditionOverlapped = "Overlapped"

	// ConditionTrafficSelected is there where spec.trafficSelector is. It is True while that selects networks of a
	// family that the EgressIP has addresses of; the message says how many, for which family they are in force, and
	// what is the matter with any of them. While it is False, the EgressIP serves no pod, unless the reason is
	// InvalidSelector.
	ConditionTrafficSelected = "TrafficSelected"

	// ConditionAddressConflict is True while a node that holds one of the addresses receives packets by which another
	// machine says that it has it; the message names that machine's hardware address. It is absent until there is a
	// first conflict.
	ConditionAddressConflict = "AddressConflict"

	// ConditionMarked is False while other EgressIPs have all marks, and a cluster has networks of users: pods of such
	// networks that this EgressIP selects send nothing outside. Otherwise it is absent.
	ConditionMarked = "Marked"

	// ConditionNetworksServed is False while an address is on a link beside its node's primary network, and the object
	// serves pods of networks of users: none of these pods leaves with that address. Otherwise it is absent.
	ConditionNetworksServed = "NetworksServed"
)

// Reasons of conditions of an EgressIP.
const (
	// ReasonAssigned: every address has a node (Assigned True).
	ReasonAssigned = "Assigned"

	// ReasonPartiallyAssigned: some addresses have a node, others have none; the message says which and why (Assigned
	// and Ready False). Selected pods leave with those that are assigned.
	ReasonPartiallyAssigned = "PartiallyAssigned"

	// ReasonNoAssignableNode: no node that is labelled k8s.ovn.org/egress-assignable and Ready is free for an address
	// of this object (Assigned, Ready, InForce False).
	ReasonNoAssignableNode = "NoAssignableNode"

	// ReasonNoNodeInNetwork: there are egress nodes, but an address is in no network of theirs.
	ReasonNoNodeInNetwork = "NoNodeInNetwork"

	// ReasonInvalidEgressIP: an item of spec.egressIPs is not an address that can be hosted. The CRD rejects most such
	// items; it is reported for objects that were stored before it did.
	ReasonInvalidEgressIP = "InvalidEgressIP"

	// ReasonInvalidSelector: the CRD let a selector pass that is invalid, such as one with an invalid label key. If it
	// is egressNodeSelector or trafficSelector, addresses stay on the nodes that host them, and get no others.
	ReasonInvalidSelector = "InvalidSelector"

	// ReasonEgressIPConflict: an address equals one of a node, pod, Service, gateway or API server, or an older
	// EgressIP has it.
	ReasonEgressIPConflict = "EgressIPConflict"

	// ReasonWaitingForNode: a node is assigned but does not yet say that it holds the address (Ready False), or a node
	// with selected pods does not yet say that it drops what they send (Fallback True).
	ReasonWaitingForNode = "WaitingForNode"

	// ReasonRemoved: Egret was removed from a node that an address of the object is assigned to (Ready False).
	ReasonRemoved = "Removed"

	// ReasonHeld: the assigned nodes hold the addresses (Ready True), or a node holds or held one of each family
	// (InForce True).
	ReasonHeld = "Held"

	// ReasonNotHeld: in a family no node has held any of the addresses since the object came or was last released
	// (InForce False).
	ReasonNotHeld = "NotHeld"

	// ReasonHosted: in every family that the object has addresses of, one has a node (Fallback False).
	ReasonHosted = "Hosted"

	// ReasonNodeIP: selected pods leave with their node's address (Fallback True), which is the default.
	ReasonNodeIP = "NodeIP"

	// ReasonDrop: packets of selected pods to outside the cluster are dropped (Fallback True), as the annotation asks.
	// Every node that can be asked and where any of them runs has confirmed it; until then it is ReasonWaitingForNode.
	ReasonDrop = "Drop"

	// ReasonServedByOther: another object serves pods that this one selects (Overlapped True), or all of them that run
	// (Fallback True).
	ReasonServedByOther = "ServedByOther"

	// ReasonDroppedByOther: the same, of others that have no node, and have what these pods send dropped.
	ReasonDroppedByOther = "DroppedByOther"

	// ReasonNoOverlap: no other EgressIP serves a pod that this one selects (Overlapped False).
	ReasonNoOverlap = "NoOverlap"

	// ReasonNetworksSelected: spec.trafficSelector selects networks (TrafficSelected True).
	ReasonNetworksSelected = "NetworksSelected"

	// ReasonNoNetworks: spec.trafficSelector selects no EgressIPTraffic, or none with networks of a family that the
	// EgressIP has addresses of (TrafficSelected False).
	ReasonNoNetworks = "NoNetworks"

	// ReasonTooManyNetworks: the selected EgressIPTraffics have more networks than one EgressIP can have; the youngest
	// of them do not count (TrafficSelected False).
	ReasonTooManyNetworks = "TooManyNetworks"

	// ReasonAddressInUse: a machine on the network answers for an address too (AddressConflict True).
	ReasonAddressInUse = "AddressInUse"

	// ReasonNoConflict: nothing of one was received for half a minute (AddressConflict False).
	ReasonNoConflict = "NoConflict"

	// ReasonNoMarkLeft: other EgressIPs have all marks (Marked False).
	ReasonNoMarkLeft = "NoMarkLeft"
)

// Reasons of Events on an EgressIP. Those of type Warning are the ones OVN-Kubernetes emits.
const (
	// EventNoMatchingNodeFound (Warning): no node can host any of the addresses.
	EventNoMatchingNodeFound = "NoMatchingNodeFound"
	// EventEgressIPConflict (Warning): an address belongs to a node, pod, Service, gateway or API server.
	EventEgressIPConflict = "EgressIPConflict"
	// EventUnsupportedRequest (Warning): an older EgressIP has the address.
	EventUnsupportedRequest = "UnsupportedRequest"
	// EventUnassignedRequest (Warning): some addresses have a node, others have none.
	EventUnassignedRequest = "UnassignedRequest"
	// EventInvalidEgressIP (Warning): an item of spec.egressIPs is not an address that can be hosted.
	EventInvalidEgressIP = "InvalidEgressIP"
	// EventUndefinedRequest (Warning): pods are selected by another EgressIP as well, which serves them: condition
	// Overlapped has begun.
	EventUndefinedRequest = "UndefinedRequest"
	// EventFallback (Warning): no address of a family has a node, and what happens to the pods' traffic now.
	EventFallback = "FellBack"
	// EventNodeProblem (Warning): the node that an address is assigned to cannot hold it, or a node cannot serve its
	// own selected pods, and what its targets refused.
	EventNodeProblem = "NodeProblem"
	// EventAssigned (Normal): an address got a node.
	EventAssigned = "Assigned"
	// EventMoved (Normal): an address went from one node to another.
	EventMoved = "Moved"
	// EventNetworksRemoved (Warning): spec.trafficSelector no longer selects some networks.
	EventNetworksRemoved = "NetworksRemoved"
	// EventTrafficProblem (Warning): a network of a selected EgressIPTraffic cannot be used as it is written.
	EventTrafficProblem = "TrafficProblem"
	// EventAddressInUse (Warning): a machine on the network answers for an address of a holder.
	EventAddressInUse = "AddressInUse"
	// EventMarkReplaced (Warning): the object gets another mark: its own is invalid, or is an older EgressIP's.
	EventMarkReplaced = "MarkReplaced"
	// EventNoMarkLeft (Warning): other EgressIPs have all marks.
	EventNoMarkLeft = "NoMarkLeft"
	// EventReleased (Normal): a node gave an address up and no other took it.
	EventReleased = "Released"
)

// EventPortsClosed (Warning), on a Pod whose namespace has a network of its own: ports that it asks for stay closed on
// its interface in the default network.
const EventPortsClosed = "PortsClosed"

// Reasons of conditions Assigned and Ready of an EgressService, which are reasons of Events of type Warning, too. They
// share ReasonAssigned, ReasonHeld, ReasonWaitingForNode and ReasonInvalidSelector with EgressIPs, and conditions
// Fallback, of the families that the Service has ingress IPs of, and Overlapped with their reasons: of EgressServices
// that a pod is behind, the oldest that is in force serves it; where others serve all of its pods, Ready is False with
// ReasonServedByOther, too. While Assigned is False, pods leave as condition Fallback says.
const (
	// ReasonInvalidSpec: a field that the CRD let pass, or an older one, cannot be read.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonNetworkNotAllowed: the namespace may not name the routing table that spec.network names, by its annotation
	// AnnotationEgressServiceNetworks.
	ReasonNetworkNotAllowed = "NetworkNotAllowed"
	// ReasonTooManyEgressServices: the namespace has 100 older EgressServices, which is how many are served.
	ReasonTooManyEgressServices = "TooManyEgressServices"
	// ReasonNoService: there is no Service of its namespace and name that has a cluster IP and is served here.
	ReasonNoService = "NoService"
	// ReasonNotLoadBalancer: the Service is of another type.
	ReasonNotLoadBalancer = "NotLoadBalancer"
	// ReasonNoIngressIP: the load balancer has given the Service no address that packets come with.
	ReasonNoIngressIP = "NoIngressIP"
	// ReasonIngressIPConflict: an ingress IP of the Service is an address of a node, of an EgressIP that has a node, or
	// the source of another EgressService, or a node still holds it for its previous owner. So one family has no
	// address that can be a source. The message says whose it is. Where the other family has one, Ready alone is False.
	ReasonIngressIPConflict = "IngressIPConflict"
	// ReasonNoEndpoints: no pod of its namespace is behind the Service (Ready False). There is a host all the same, for
	// the first one.
	ReasonNoEndpoints = "NoEndpoints"
	// ReasonHostNetworkEndpoints: all endpoints of the Service have an address of a host (Ready False).
	ReasonHostNetworkEndpoints = "HostNetworkEndpoints"
	// ReasonNoMatchingNode: no node that spec.nodeSelector selects can be the host; the message says why each cannot.
	ReasonNoMatchingNode = "NoMatchingNode"
	// ReasonLabelTooLong: namespace and name make a label's name of more than 63 characters.
	ReasonLabelTooLong = "LabelTooLong"
	// ReasonLabelAmbiguous: the namespace and name of another EgressService, which has a host or is older, make the
	// same label.
	ReasonLabelAmbiguous = "LabelAmbiguous"
	// ReasonUnknownNetwork: a node has no such routing table (Ready False). It is a node's word.
	ReasonUnknownNetwork = "UnknownNetwork"
	// ReasonNoDefaultRoute: on a node the routing table has no default route; the message says what becomes of packets
	// that it has no route for (Ready False). It is a node's word.
	ReasonNoDefaultRoute = "NoDefaultRoute"
)

// Conditions and Events of a Service, which the controller writes.
const (
	// ConditionRefused is True on a Service that asks for an address and port that it does not get; the message
	// says which, why, and what to do. All else of the Service is served. It is absent where there is nothing to say.
	ConditionRefused = "egret.k8s.ovn.org/Refused"
	// ReasonRefused is its reason, and that of the Event (Warning).
	ReasonRefused = "AddressRefused"
	// ConditionServed is True on a Service that gets addresses beside its cluster IPs; the message lists these, with
	// ports, and lastTransitionTime is when that list last changed. It is a record: while the Service asks for what is
	// listed, no other Service with an equal claim takes it, be it older. It is absent where there is nothing to list.
	ConditionServed = "egret.k8s.ovn.org/Served"
	// ReasonServed is its reason.
	ReasonServed = "AddressServed"
)

// ConditionNetworkCreated of a UserDefinedNetwork or a ClusterUserDefinedNetwork is True when each of its namespaces
// has a NetworkAttachmentDefinition with the network's number. The message names the namespaces, or says what is wrong.
const ConditionNetworkCreated = "NetworkCreated"

// Reasons of condition NetworkCreated.
const (
	// ReasonDefinitionCreated: all is there (NetworkCreated True).
	ReasonDefinitionCreated = "NetworkAttachmentDefinitionCreated"

	// ReasonSyncError: a UserDefinedNetwork cannot become its namespace's network, as the message says.
	ReasonSyncError = "SyncError"

	// ReasonDefinitionSyncError: a ClusterUserDefinedNetwork cannot become the network of some namespaces, as the
	// message says. It is that of the others.
	ReasonDefinitionSyncError = "NetworkAttachmentDefinitionSyncError"

	// ReasonDefinitionDeleted: a NetworkAttachmentDefinition is being deleted, after the last pod of its namespace.
	ReasonDefinitionDeleted = "NetworkAttachmentDefinitionDeleted"

	// ReasonNetworkUnsupported: Egret does not serve such networks; the message says what of it. An EgressService has
	// it where its namespace has a network of its own. An EgressIP has it, and an Event, where an address on a link
	// does not serve its pods.
	ReasonNetworkUnsupported = "NetworkNotSupported"
)
