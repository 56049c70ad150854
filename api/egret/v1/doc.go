// Package v1 holds the types of API group egret.k8s.ovn.org, version v1: what Egret's own programs tell each other.
//
// In: what a node's agent reads back from its targets. Out: one EgressNode a node, from which the controller concludes
// that an egress IP is ready, and other nodes which node they may send to. Users read these objects and write none.
//
// +kubebuilder:object:generate=true
// +groupName=egret.k8s.ovn.org
package v1

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.22.0 object paths=.
//go:generate sh -c "go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.22.0 crd paths=. output:crd:stdout > ../../../deploy/crd-egressnodes.yaml"
