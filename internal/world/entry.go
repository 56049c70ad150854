package world

import (
	"slices"

	"github.com/egret-net/egret/internal/ref"
)

// Entry names something that can be read in a world: one object, one entry of an index, or a whole table (Key "").
type Entry struct {
	Kind Kind
	Key  string
}

// FollowChanges calls changed with each entry that changes from now on. The world may be in the middle of the change:
// changed only notes the entry.
func (w *World) FollowChanges(changed func(Entry)) { w.followers = append(w.followers, changed) }

// noteChanged tells the entry's Readers, and the followers, that an entry changes.
func (w *tables) noteChanged(k Kind, key string) {
	if s := w.sources[Entry{k, key}]; s != nil {
		s.tellReaders()
	}
	for _, changed := range w.followers {
		changed(Entry{k, key})
	}
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
	KindNamespace
	KindPods
	KindPod // one pod, and which EgressIPs have claims to its packets
	KindEgressIPs
	KindEgressIP
	KindTraffics
	KindTraffic
	KindDestinations // the networks that one EgressIP's selector of traffic selects, and their problems
	KindPlaced       // the EgressIPs whose statuses give one address to a node
	KindReach        // whether one node counts as reachable
	// the nodes that lead their pods to holders of one EgressIP; "": who has no room left to say so
	KindSteering
	KindHolders    // the nodes that hold addresses of one EgressIP
	KindHeldAt     // the nodes that say that they hold one address, for whatever object
	KindHeldBy     // what one node says that it holds, for the controller
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
	KindServices
	KindService
	KindEndpoints      // the endpoints of one Service
	KindSlots          // how many ECMP slots EgressIPs need
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
)

// Keys lists the objects of a kind, in no order; for the kinds that features compile one by one.
func (w *World) Keys(k Kind) []string {
	if t, is := w.kinds[k]; is {
		return t.allKeys()
	}
	return []string{""}
}

// Object is what references call an object of a kind; zero of the cluster default network, and of kinds that there is
// one of.
func (w *World) Object(k Kind, key string) ref.Object {
	t, is := w.kinds[k]
	if !is || k == KindNetwork && key == ref.DefaultNetwork {
		return ref.Object{}
	}
	return ref.Of(t.objectKind(), key)
}

// ObjectKinds are all that references call the kinds of objects, sorted.
func (w *World) ObjectKinds() []string {
	var names []string
	for _, t := range w.kinds {
		names = append(names, t.objectKind())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Has says whether the object of a kind exists.
func (w *World) Has(k Kind, key string) bool {
	t, is := w.kinds[k]
	return !is || t.hasKey(key)
}
