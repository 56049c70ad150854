// Package v1 holds the types of API group egret.k8s.ovn.org, version v1, in which Egret's own programs report to each
// other.
//
// In: the state that a node's agent reads back from its targets. Out: one EgressNode a node. The controller concludes
// from it that an egress IP is ready, other nodes which node they may send to. Users read these objects and write none.
//
// +kubebuilder:object:generate=true
// +groupName=egret.k8s.ovn.org
package v1

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.22.0 object paths=.
//go:generate sh -c "go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.22.0 crd paths=. output:crd:stdout > ../../../deploy/helm/egret/templates/crd-egressnodes.yaml"
