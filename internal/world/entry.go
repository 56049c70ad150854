package world

// Entry names something that can be read in a world: one object, one entry of an index, or a whole table (Key "").
type Entry struct {
	Kind Kind
	Key  string
}

// Kind is a table or an index of the world.
type Kind uint8

const (
	KindOnce Kind = iota // always there, once, key "": for what a node holds whatever the cluster looks like
	KindHost
	KindNodes
	KindNode
	KindSubnets // the pod subnets of one node
	KindNetworks
	KindNetwork
	KindNetworksOf // the networks that have one namespace
	KindNamespace
	KindPods
	KindPod // one pod, and which EgressIPs select it, in which order
	KindEgressIPs
	KindEgressIP
	KindMarked // the EgressIPs that have one mark
	KindTraffics
	KindTraffic
	KindDestinations // the networks that one EgressIP's selector of traffic selects, and their problems
	KindPlaced       // the EgressIPs whose statuses give one address to a node
	KindReach        // whether one node counts as reachable
	// the nodes that lead their pods to holders of one EgressIP; "": who has no room left to say so
	KindSteering
	KindHolders    // the nodes that hold addresses of one EgressIP
	KindHeldAt     // the nodes that say that they hold one address, for whatever object
	KindOverclaims // whether one node says that it holds too much
	// reported hindrances to holding addresses of one EgressIP, and other machines that have these
	KindProblems
	KindNodeProblem // one node's reported hindrance to all of them
	KindYielded     // the addresses that this node yields
	KindHosts       // whether one node hosts egress IPs
	KindFaults      // one node's report on its networks that can host nothing
	KindTunnel      // whether one node answers over its tunnel
	// whether one node has followed what this one has seen; "": whether that counts
	KindClearance
	KindFormer // the former claims to one address of this node's pods
	KindAttachments
	KindAttachment
	KindAttachedAt // the pods of this node that have one address in the default network
	KindServices
	KindService
	KindEndpoints      // the endpoints of one Service
	KindSlots          // how many ECMP slots EgressIPs need that select one namespace; "": all EgressIPs
	KindServiceAddress // the Services that ask for one address
	KindFrontend       // the Service that gets an address and port
	KindIsFirst        // whether one Service gets it, "address:port/protocol namespace/name"
	KindNodeAddress    // the nodes that have one address
	KindHostAddress    // the nodes that say that their hosts have one address
	KindGatewayAddress // the nodes whose default gateway has one address
	// the Services whose load balancer has one address
	KindBalancerAddress
	KindNodeNetwork // the nodes that have an address in one network
	// the lengths of the networks that nodes have addresses in
	KindNetworkLengths
	KindEgressServices
	KindEgressService
	KindHasBeenHost      // whether this node has been the host of an EgressService
	KindEgressServicesIn // whether one namespace has EgressServices
	// the EgressServices of a namespace that have an endpoint at one address, "namespace/address"
	KindEgressServicesAt
	KindEgressServiceActive // whether an EgressService decides about its pods' packets
	KindUserNetworks        // the UserDefinedNetworks
	KindUserNetwork
	KindClusterNetworks // the ClusterUserDefinedNetworks
	KindClusterNetwork
	KindDefinitions // the NetworkAttachmentDefinitions
	KindDefinition
)
