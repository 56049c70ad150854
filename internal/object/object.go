// Package object names objects of Kubernetes, for all that speaks of them without having them: whom a row of the
// plan is for, what a node reports, which object decides about a pod's packets.
//
// In and out: plain values.
package object

import (
	"cmp"
	"strings"
)

// Kinds that rows, reports and claims are of.
const (
	EgressIP = "EgressIP"
	Node     = "Node"
	Pod      = "Pod"
	Service  = "Service"
	// Network is no object of Kubernetes: a subnet of a node's links, by its prefix.
	Network = "Network"
)

// DefaultNetwork is the name of the cluster default network, where an address is named with its network.
const DefaultNetwork = "default"

// Ref names one object. Namespace is "" of kinds without namespaces.
type Ref struct{ Kind, Namespace, Name string }

// Of is the object of a kind by its key, "namespace/name" or "name".
func Of(kind, key string) Ref {
	if namespace, name, namespaced := strings.Cut(key, "/"); namespaced {
		return Ref{kind, namespace, name}
	}
	return Ref{Kind: kind, Name: key}
}

// Key is "namespace/name", or "name".
func (r Ref) Key() string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// String is "Kind/namespace/name", or "Kind/name".
func (r Ref) String() string { return r.Kind + "/" + r.Key() }

// Compare orders by kind, namespace and name.
func (r Ref) Compare(o Ref) int {
	return cmp.Or(cmp.Compare(r.Kind, o.Kind), cmp.Compare(r.Namespace, o.Namespace), cmp.Compare(r.Name, o.Name))
}
