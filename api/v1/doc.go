// Package v1 holds the types of API group k8s.ovn.org, version v1, as users of OVN-Kubernetes write them, and the names
// that go with them: annotations, the egress label, condition types, reasons and Event reasons.
//
// In: manifests and objects of the API server. Out: typed objects. It holds no behaviour; the rules an object must
// obey are CEL rules of its CRD, generated from the markers here into the chart in deploy.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package="../applyconfiguration"
// +groupName=k8s.ovn.org
package v1

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.22.0 object paths=.
//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.22.0 applyconfiguration paths=.
//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.22.0 crd paths=. output:crd:dir=../../deploy/helm/egret/templates
//go:generate mv ../../deploy/helm/egret/templates/k8s.ovn.org_egressips.yaml ../../deploy/helm/egret/templates/crd-egressips.yaml
//go:generate mv ../../deploy/helm/egret/templates/k8s.ovn.org_egressiptraffics.yaml ../../deploy/helm/egret/templates/crd-egressiptraffics.yaml
//go:generate mv ../../deploy/helm/egret/templates/k8s.ovn.org_egressservices.yaml ../../deploy/helm/egret/templates/crd-egressservices.yaml
//go:generate mv ../../deploy/helm/egret/templates/k8s.ovn.org_userdefinednetworks.yaml ../../deploy/helm/egret/templates/crd-userdefinednetworks.yaml
//go:generate mv ../../deploy/helm/egret/templates/k8s.ovn.org_clusteruserdefinednetworks.yaml ../../deploy/helm/egret/templates/crd-clusteruserdefinednetworks.yaml
