package plan

// Names that are no network's.
const (
	// IntegrationBridge is the bridge that ovn-controller programs.
	IntegrationBridge = "br-int"
	// LivenessBridge is the bridge of the tunnels that only tell whether other nodes answer.
	LivenessBridge = "br-egret-bfd"
	// PostroutingChain is the chain of table inet in which the host translates sources; several features have rules
	// there.
	PostroutingChain = "postrouting"
	// ForwardChain is the chain of the host's forwarding. Names of its rules that drop and count what was not
	// translated begin with ForwardUntranslated.
	ForwardChain        = "forward"
	ForwardUntranslated = "untranslated "
	// PhysicalNetwork is the name that OVN's localnet ports and ovn-bridge-mappings share.
	PhysicalNetwork = "physnet"
)

// Router, Switch and Group are the ids of root rows that have a name column.
func Router(name string) RowID { return RowID{"Logical_Router", name} }
func Switch(name string) RowID { return RowID{"Logical_Switch", name} }
func Group(name string) RowID  { return RowID{"Load_Balancer_Group", name} }

// Priorities of logical router policies, as in OVN-Kubernetes.
const (
	// Packets of networks beside the default one, at its cluster router: to its open Services; between it and them; and
	// to their own node.
	PriorityOpenServices = 1013
	// PriorityOwnLinkLocal leads the default network's pods to an address that their host has in the range of
	// masquerade addresses. PriorityIsolated drops what they send to the rest of the range.
	PriorityOwnLinkLocal   = 1011
	PriorityIsolated       = 1010
	PriorityNetworkOwnNode = 1005
	// PriorityOpen is at such a network's own cluster router, for what goes to the open Services by this very node.
	PriorityOpen     = 103
	PriorityOwnNode  = 1004 // to an address of the pod's own node: to the host, by the management port
	PriorityAllow    = 102  // traffic that no egress feature may touch
	PriorityEgressIP = 100
	// PriorityMarked is of the policy that marks an EgressIP's packets on their way out of a network of users, and
	// PriorityFiltered of the one that drops there what has no mark.
	PriorityMarked   = 95
	PriorityFiltered = 90
	// PriorityMarkedOutside leads these, at the default network's cluster router, to the gateway router.
	PriorityMarkedOutside = 1000
	// PriorityUncovered comes after all that gives pods' packets a source.
	PriorityUncovered = 99
	// PriorityEgressService comes before EgressIPs, of which no pod's packets are at the same time.
	PriorityEgressService = 101
	// PriorityFragments is of EgressIPs, too.
	PriorityFragments = 101
	// PriorityRefuse is of the ACLs of node switches.
	PriorityRefuse = 1000
	// PriorityAdmit and PriorityIsolate are of ACLs about pods that have another primary network.
	PriorityAdmit   = 1001
	PriorityIsolate = 1000
	// PriorityUnserved is of the ACLs that come after load balancing: PriorityUnservedDrop drops what they do not
	// answer.
	PriorityUnserved     = 1000
	PriorityUnservedDrop = 900
	// PriorityReplies is of the QoS rules that mark replies of inbound connections, and PriorityInsideReplies of the
	// one that takes those out that stay inside the cluster.
	PriorityReplies       = 103
	PriorityInsideReplies = 104
	// PriorityRouterReplies is of the one for replies by the gateway router of a network of users.
	PriorityRouterReplies = 105
)

const (
	// MarkReply is set on replies of inbound connections; policy 102 lets them take the way they came.
	MarkReply = 42
	// MarkFiltered is on what pods with an egress IP send through their own node's gateway router: with the node's
	// address it is dropped. Not all of its bits 4 to 9 are set, which MarkNodeIP is told by.
	MarkFiltered = 43
	// MarkBalanced is on what a gateway router's load balancer has translated, inside that router: it gets the router's
	// address as source.
	MarkBalanced = 44
	// MarkNodeIP (0x3f0) asks breth0 for the node's own address as source (seed egress-ip.md, "Pod to node IP
	// traffic").
	MarkNodeIP = 1008
	// ZoneGateway is the conntrack zone of the gateway bridge; ct_mark there says whose a connection is.
	ZoneGateway = 64000
)

// OpenServiceIPs is the id of the set of the open Services' cluster IPs, which pods of all networks reach.
func OpenServiceIPs(family string) string { return "egret-open-services." + family }

// NetworkServices is the id of the set of the cluster IPs of Services of networks beside the default one which have an
// address for the outside.
func NetworkServices(family string) string { return "egret-network-services." + family }

// HostKernel stands among routers for the host's own kernel, which translates to egress IPs on links.
const HostKernel = "host"
