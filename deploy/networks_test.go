package deploy_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"

	v1 "github.com/egret-net/egret/api/v1"
)

func namespaceOf(changes ...change) *unstructured.Unstructured {
	return changed("v1", "Namespace", "", "tenant", nil, changes)
}

func definitionOf(changes ...change) *unstructured.Unstructured {
	spec := map[string]any{"config": `{"type":"ovn-k8s-cni-overlay","name":"shared"}`}
	return changed("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition", "default", "shared", spec, changes)
}

func userNetworkOf(changes ...change) *unstructured.Unstructured {
	return changed("k8s.ovn.org/v1", "UserDefinedNetwork", "default", "net", map[string]any{"topology": "Layer3"},
		changes)
}

func labelledWith(key, value string) change {
	return func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{key: value}) }
}

func configured(text string) change {
	return func(o *unstructured.Unstructured) { o.Object["spec"] = map[string]any{"config": text} }
}

func protectedNetwork(o *unstructured.Unstructured) { o.SetFinalizers([]string{v1.FinalizerNetwork}) }

// TestNetworksAreGuarded: a namespace's network is said when it is made, a network's number is the controller's word,
// and the controller writes nothing else.
func TestNetworksAreGuarded(t *testing.T) {
	j, admin, c := newJudge(t), &user.DefaultInfo{Name: "admin"}, controllerUser
	const definitions = "network-attachment-definitions"
	own, numbered := labelledWith(v1.LabelPrimaryNetwork, ""), annotated(v1.AnnotationNetworkID, "1")
	made, other := labelledWith(v1.LabelUserDefinedNetwork, ""), configured(`{"type":"macvlan"}`)
	const numbers, theRest = "are egret-controller's", "the number and the finalizer alone"
	j.refusesAll(t, map[string]refused{
		"label later": {update{admin, "namespaces", "", namespaceOf(), namespaceOf(own)},
			"only when the namespace is made"},
		"label taken away": {update{admin, "namespaces", "", namespaceOf(own), namespaceOf()},
			"only when the namespace is made"},
		"made with a number": {update{admin, definitions, "", nil, definitionOf(numbered)}, numbers},
		"given a number":     {update{admin, definitions, "", definitionOf(), definitionOf(numbered)}, numbers},
		"without its number": {update{admin, definitions, "", definitionOf(numbered), definitionOf()}, numbers},
		"made with the controller's label": {update{admin, definitions, "", nil, definitionOf(made)},
			"is egret-controller's"},
		"label of the controller's added": {update{admin, definitions, "", definitionOf(), definitionOf(made)},
			"is egret-controller's"},
		"label of the controller's taken": {update{admin, definitions, "", definitionOf(made), definitionOf()},
			"is egret-controller's"},
		"another configuration": {update{admin, definitions, "", definitionOf(numbered), definitionOf(numbered, other)},
			"cannot change"},
		"the controller makes another's": {update{c, definitions, "", nil, definitionOf()}, theRest},
		"the controller makes macvlan": {update{c, definitions, "", nil, definitionOf(made, other)},
			"of type ovn-k8s-cni-overlay only"},
		"the controller deletes another's": {update{c, definitions, "", definitionOf(), nil}, theRest},
		"the controller changes another's": {update{c, definitions, "", definitionOf(), definitionOf(other)}, theRest},
		"the controller takes another's":   {update{c, definitions, "", definitionOf(), definitionOf(made)}, theRest},
		"the controller labels a network": {update{c, "userdefinednetworks", "", userNetworkOf(),
			userNetworkOf(made)}, theRest},
	})
	for name, u := range map[string]update{
		"made with the label":       {admin, "namespaces", "", nil, namespaceOf(own)},
		"another value":             {admin, "namespaces", "", namespaceOf(own), namespaceOf(labelledWith(v1.LabelPrimaryNetwork, "x"))},
		"an administrator's":        {admin, definitions, "", nil, definitionOf()},
		"changed before its number": {admin, definitions, "", definitionOf(), definitionOf(other)},
		"another annotation":        {admin, definitions, "", definitionOf(numbered), definitionOf(numbered, labelled)},
		"deleted":                   {admin, definitions, "", definitionOf(numbered), nil},
		"the controller numbers":    {c, definitions, "", definitionOf(), definitionOf(numbered)},
		"the controller makes one":  {c, definitions, "", nil, definitionOf(made, numbered)},
		"the controller changes its own": {c, definitions, "", definitionOf(made, numbered),
			definitionOf(made, numbered, configured(`{"type":"ovn-k8s-cni-overlay","name":"x"}`))},
		"the controller deletes its own": {c, definitions, "", definitionOf(made), nil},
		"the controller protects": {c, "userdefinednetworks", "", userNetworkOf(),
			userNetworkOf(protectedNetwork)},
	} {
		if have := j.refusal(u); have != "" {
			t.Errorf("%s: refused: %s", name, have)
		}
	}
}
