package v1

// Prefixes of annotation and label keys. The node agent may write annotations of these two prefixes only.
const (
	// Prefix is that of the names shared with OVN-Kubernetes.
	Prefix = "k8s.ovn.org/"
	// EgretPrefix is that of Egret's own names.
	EgretPrefix = "egret.k8s.ovn.org/"
)

// LabelEgressAssignable on a Node, with any value, lets the node host egress IPs.
const LabelEgressAssignable = Prefix + "egress-assignable"

// LabelEgressService, followed by an EgressService's namespace, "-" and its name, is the key of a label with an empty
// value that egret-controller gives the Node that is its host, and no other. Load balancers announce the Service from
// that node.
const LabelEgressService = "egress-service.k8s.ovn.org/"

// LabelPrimaryNetwork on a Namespace, with any value, says that its pods have a user-defined network as their primary
// one. It can be set when the namespace is made, and at no other time: pods that run would be in the wrong network.
const LabelPrimaryNetwork = Prefix + "primary-user-defined-network"

// Of a NetworkAttachmentDefinition that is a network which Egret serves, written by egret-controller alone.
const (
	// AnnotationNetworkName is the name of the network that a NetworkAttachmentDefinition has the number of.
	AnnotationNetworkName = Prefix + "network-name"
	// AnnotationNetworkID is a network's number, from 1 to 4095. All NetworkAttachmentDefinitions of a network have it.
	AnnotationNetworkID = Prefix + "network-id"
	// LabelUserDefinedNetwork is on NetworkAttachmentDefinitions that egret-controller made for a UserDefinedNetwork or
	// a ClusterUserDefinedNetwork.
	LabelUserDefinedNetwork = Prefix + "user-defined-network"
	// FinalizerNetwork keeps definitions of networks, and the objects that they were made for, while pods use the
	// network.
	FinalizerNetwork = Prefix + "user-defined-network-protection"
)

// Annotations of a Node that egret-controller writes; the node agent may not.
const (
	// AnnotationNodeSubnets is a JSON object, network to list of CIDRs:
	// {"default":["10.244.1.0/24","fd00:10:244:1::/64"]}. Older writers give a single string instead of the list.
	AnnotationNodeSubnets = Prefix + "node-subnets"
	// AnnotationNodeID is a decimal number, unique in the cluster, from 1.
	AnnotationNodeID = Prefix + "node-id"
	// AnnotationNodeTransitSwitchPortIfaddr is the node's address on the transit switch as JSON:
	// {"ipv4":"100.88.0.3/16","ipv6":"fd97::3/64"}; a family the cluster does not have is absent.
	AnnotationNodeTransitSwitchPortIfaddr = Prefix + "node-transit-switch-port-ifaddr"
	// AnnotationNodeGatewayRouterLRPIfaddrs is the gateway router's address on the join switch by network, as JSON:
	// {"default":{"ipv4":"100.64.0.3/16","ipv6":"fd98::3/64"}}.
	AnnotationNodeGatewayRouterLRPIfaddrs = Prefix + "node-gateway-router-lrp-ifaddrs"
	// AnnotationAllocationProblem says in words why the node has no id or subnets, or not those that its annotations
	// ask for. It is there while that is so; an Event says it once.
	AnnotationAllocationProblem = EgretPrefix + "allocation-problem"
	// AnnotationRecordedAddresses is what has been accepted as the node's own, as JSON:
	// {"addresses":["172.18.0.2","fd00:18::2"], "mac-address":"0a:58:ac:12:00:02"}, the addresses on the primary
	// network and the uplink's hardware address. Of several nodes that claim the same, it is that one's whose record
	// has it. It goes with the Node; without it, the first that claims something has it.
	AnnotationRecordedAddresses = EgretPrefix + "recorded-addresses"
)

// Annotations of a Node that its agent writes.
const (
	// AnnotationNodePrimaryIfaddr is the node's own address on its primary interface as JSON:
	// {"ipv4":"172.18.0.2/16","ipv6":"fd00:18::2/64"}.
	AnnotationNodePrimaryIfaddr = Prefix + "node-primary-ifaddr"
	// AnnotationHostCIDRs is a sorted JSON list of the host's addresses with prefix length: ["172.18.0.2/16"].
	AnnotationHostCIDRs = Prefix + "host-cidrs"
	// AnnotationL3GatewayConfig is the gateway by network, as JSON:
	// {"default":{"mode":"shared","interface-id":"breth0_n1",
	// "mac-address":"0a:58:ac:12:00:02","ip-addresses":["172.18.0.2/16"],"next-hops":["172.18.0.1"],
	// "node-port-enable":"true","vlan-id":"0"}}.
	AnnotationL3GatewayConfig = Prefix + "l3-gateway-config"
	// AnnotationNodeChassisID is the system-id of the node's Open vSwitch: the node's name.
	AnnotationNodeChassisID = Prefix + "node-chassis-id"
	// AnnotationNodeMgmtPortMACAddresses is the management port's MAC by network, as JSON:
	// {"default":"0a:58:0a:f4:01:02"}.
	AnnotationNodeMgmtPortMACAddresses = Prefix + "node-mgmt-port-mac-addresses"
	// AnnotationZoneName is the OVN zone of the node, which is the node's name.
	AnnotationZoneName = Prefix + "zone-name"
)

// AnnotationEgressCordon of a Node, with any value, keeps the node from hosting egress IPs: those that it has move to
// other egress nodes, each when its successor is ready. People set it before maintenance and remove it afterwards.
// egret-node release sets it to EgressCordonShutdown followed by the kernel's boot id, unless people have set it; the
// agent removes that after the next boot.
const (
	AnnotationEgressCordon = EgretPrefix + "egress-cordon"
	EgressCordonShutdown   = "shutdown/"
	// EgressCordonDrained ends the value where the node was drained (kubectl drain), and may go on without a boot: the
	// agent removes it when the node is schedulable again.
	EgressCordonDrained = ".drain"
)

// AnnotationSecondaryNetworks of a Node, which people set, confirms secondary networks of it, as a list of prefixes
// with commas: "172.18.5.0/24". It is needed for a network inside another node's that no second node has an address in:
// one node's word alone keeps no egress IP from others.
const AnnotationSecondaryNetworks = EgretPrefix + "secondary-networks"

// AnnotationExternalIPs of a Node, which people set to "true", lets Services' spec.externalIPs name the node's own
// addresses: connections to the ports of such a Service go to its endpoints, but for those that nodes themselves need.
const AnnotationExternalIPs = EgretPrefix + "external-ips"

// AnnotationPodNetworks of a Pod, written by its node's agent before CNI ADD answers, holds its addresses by network,
// as JSON: {"default":{"ip_addresses":["10.244.1.5/24"],"mac_address":"0a:58:0a:f4:01:05","gateway_ips":["10.244.1.1"],
// "role":"primary"}}.
const AnnotationPodNetworks = Prefix + "pod-networks"

// AnnotationOpenDefaultPorts of a Pod whose namespace has a network of its own, written by its user, opens ports of its
// interface in the default network, as a YAML list: [{protocol: tcp, port: 80}, {protocol: icmp}]. Protocols are tcp,
// udp, sctp and icmp. It opens nothing if a part of it cannot be read.
const AnnotationOpenDefaultPorts = Prefix + "open-default-ports"

// AnnotationNetworkStatus of a Pod lists its interfaces as Multus does. Of a pod that has its namespace's own network
// its node's agent writes it, together with AnnotationPodNetworks; nobody here reads it:
// [{"name":"ovn-kubernetes","interface":"eth0","ips":["10.244.1.5"],"mac":"0a:58:0a:f4:01:05","dns":{}},
// {"name":"ovn-kubernetes","interface":"ovn-udn1","ips":["10.128.1.5"],"mac":"0a:58:0a:80:01:05","default":true,
// "dns":{}}].
const AnnotationNetworkStatus = "k8s.v1.cni.cncf.io/network-status"

// AnnotationWhenUnassigned of an EgressIP or an EgressService, written by its user, says what the traffic of its pods
// does while the object is not in force and no node can host it, or it has no host for whatever reason: with
// WhenUnassignedDrop, in whatever case, it is dropped; without the annotation it leaves with the node's address.
// Another value is refused, and counts as WhenUnassignedDrop where it was not.
const (
	AnnotationWhenUnassigned = EgretPrefix + "when-unassigned"
	WhenUnassignedDrop       = "drop"
)

// AnnotationEgressIPMark of an EgressIP, written by the controller once a cluster has a network of a user, is the mark
// of packets from such networks that leave with its addresses: a number from 50000 to 55000. No other EgressIP has it.
// It stays as long as the object.
const AnnotationEgressIPMark = Prefix + "egressip-mark"

// AnnotationOverride of an EgressIP, written by an administrator, is OverrideNever, in whatever case: no EgressService
// decides about packets of the pods that it selects, in the families of its addresses, whether it has a node or not.
// Another value is refused, and counts as OverrideNever where it was not.
const (
	AnnotationOverride = EgretPrefix + "override-by-egress-services"
	OverrideNever      = "never"
)

// AnnotationEgressServiceNetworks of a Namespace, written by an administrator, lists with commas what EgressServices of
// the namespace may have as spec.network, as it is written there: "blue,1001". AnyNetwork is all, and the empty list
// nothing but the host's own routing. Without the annotation they may name all.
const (
	AnnotationEgressServiceNetworks = EgretPrefix + "egress-service-networks"
	AnyNetwork                      = "*"
)
