package world

import (
	"maps"
	"slices"
)

// Touch names something that a compile may read: one object, one index entry, or a whole table (Key "").
type Touch struct {
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
	KindNamespace
	KindPods
	KindPod
	KindEgressIPs
	KindEgressIP
	KindPlaced      // whether an EgressIP's status gives one address to a node
	KindEgressIPsIn // the EgressIPs that select one namespace, in order of precedence
	KindSteering    // the nodes that lead their pods to holders of one EgressIP
	KindHolders     // the nodes that hold addresses of one EgressIP
	KindProblems    // what nodes say keeps them from holding addresses of one EgressIP, and who else has these; "": of all
	KindYielded     // what this node yields
	KindHosts       // whether one node hosts egress IPs
	KindFaults      // what one node says of its networks that can host nothing
	KindTunnel      // what is heard from one node
	KindAttachments
	KindAttachment
	KindServices
	KindService
	KindSlots       // how many ECMP slots EgressIPs need
	KindFrontend    // the Services that ask for one address and port
	KindNodeAddress // the nodes that have one address
)

// Keys lists the objects of a kind, in no order; for the kinds that features compile one by one.
func (w *World) Keys(k Kind) []string {
	if k == KindNetwork {
		return append([]string{DefaultNetwork}, slices.Collect(maps.Keys(w.networks))...)
	}
	if t, is := w.kinds[k]; is {
		return t.keys()
	}
	return []string{""}
}

// Has says whether the object of a kind exists.
func (w *World) Has(k Kind, key string) bool {
	if k == KindNetwork {
		return key == DefaultNetwork || w.networks[key] != nil
	}
	t, is := w.kinds[k]
	return !is || t.has(key)
}
