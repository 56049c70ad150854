package deploy_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/egret-net/egret/deploy"
)

// TestStatusListsAreOwnedWhole: metadata.managedFields name each field of each item of a list that is a map, and every
// agent receives them with each change of the object: 735 bytes for the conditions of an EgressIP.
func TestStatusListsAreOwnedWhole(t *testing.T) {
	for _, object := range decodeAll(t, deploy.Manifests, "crd-*.yaml") {
		crd := object.(*apiextensionsv1.CustomResourceDefinition)
		status := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
		for field, s := range status.Properties {
			if s.XListType != nil && *s.XListType == "map" {
				t.Errorf("status.%s of %s is a map: its writer owns each field of each item", field, crd.Spec.Names.Kind)
			}
		}
	}
}
