// Package ref names objects of Kubernetes, for all that speaks of them without having them: whom a row of the
// plan is for, what a node reports, which object decides about a pod's packets.
//
// In and out: plain values.
package ref

import (
	"cmp"
	"strings"
)

// Kinds that rows, reports and claims are of.
const (
	EgressIP      = "EgressIP"
	EgressService = "EgressService"
	// EgressIPTraffic is networks that EgressIPs select.
	EgressIPTraffic = "EgressIPTraffic"
	Namespace       = "Namespace"
	Node            = "Node"
	Pod             = "Pod"
	Service         = "Service"
	// Networks that users ask for, and what they become.
	UserDefinedNetwork          = "UserDefinedNetwork"
	ClusterUserDefinedNetwork   = "ClusterUserDefinedNetwork"
	NetworkAttachmentDefinition = "NetworkAttachmentDefinition"
	// Network is no object of Kubernetes: a subnet of a node's links, by its prefix.
	Network = "Network"
	// LogicalNetwork is not an API kind either: a network of pods other than the cluster default network, by its name.
	LogicalNetwork = "LogicalNetwork"
)

// DefaultNetwork is the name of the cluster default network, where an address is named with its network.
const DefaultNetwork = "default"

// Object names one object. Namespace is "" of kinds without namespaces.
type Object struct{ Kind, Namespace, Name string }

// Of is the object of a kind by its key, "namespace/name" or "name".
func Of(kind, key string) Object {
	if namespace, name, namespaced := strings.Cut(key, "/"); namespaced {
		return Object{kind, namespace, name}
	}
	return Object{Kind: kind, Name: key}
}

// OfKey is the object that egress addresses are of, by its key: an EgressService has a namespace, an EgressIP has none.
func OfKey(key string) Object {
	if strings.Contains(key, "/") {
		return Of(EgressService, key)
	}
	return Of(EgressIP, key)
}

// Key is "namespace/name", or "name".
func (o Object) Key() string {
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

// String is "Kind/namespace/name", or "Kind/name".
func (o Object) String() string { return o.Kind + "/" + o.Key() }

// Compare orders by kind, namespace and name.
func (o Object) Compare(p Object) int {
	return cmp.Or(cmp.Compare(o.Kind, p.Kind), cmp.Compare(o.Namespace, p.Namespace), cmp.Compare(o.Name, p.Name))
}
