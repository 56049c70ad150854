package network

import (
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// LabelPrimaryNetwork of a Namespace is what api/v1 documents.
const LabelPrimaryNetwork = "k8s.ovn.org/primary-user-defined-network"

// Refuse returns why pods of a namespace cannot start, and what to do; "": they can. A pod of a namespace that asks for
// its own network never starts in the default network: pods of other namespaces would reach it there.
func Refuse(w *world.View, namespace, _ string) string {
	if w.PrimaryNetwork(namespace) != "" {
		return ""
	}
	return "namespace " + namespace + " has label " + LabelPrimaryNetwork + ", and no network yet: make a " +
		ref.UserDefinedNetwork + " in it or a " + ref.ClusterUserDefinedNetwork + " that selects it, or see the " +
		"conditions of those that are there (kubectl get udn,cudn -A)"
}
