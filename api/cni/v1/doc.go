// Package v1 holds the types of API group k8s.cni.cncf.io, version v1. They name and configure networks of pods, by the
// standard of the Kubernetes Network Plumbing Working Group. Multus uses the same objects.
//
// In: manifests and objects of the API server. Out: typed objects. Package kube reads the configurations in them.
//
// +kubebuilder:object:generate=true
// +groupName=k8s.cni.cncf.io
package v1

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.22.0 object paths=.
// With Multus the definition may be there already: the chart has a value for that.
//
//go:generate sh -c "(echo '{{- if .Values.crds.networkAttachmentDefinitions }}'; go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.22.0 crd paths=. output:crd:stdout; echo '{{- end }}') > ../../../deploy/helm/egret/templates/crd-network-attachment-definitions.yaml"
