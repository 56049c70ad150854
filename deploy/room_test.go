package deploy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	"github.com/egret-net/egret/deploy"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/ref"
)

// TestStatusListsAreBounded: a status whose list has more items than its schema takes is refused for ever. So each
// bound of the schemas is one that the code keeps: a new one has to be kept before it is added here.
func TestStatusListsAreBounded(t *testing.T) {
	const families = 2 // one item a family
	want := map[string]int64{
		"EgressIP.leaving": int64(handover.MostLeaving(ref.EgressIP)), "EgressIP.inForce": families,
		"EgressService.leaving": int64(handover.MostLeaving(ref.EgressService)), "EgressService.inForce": families,
		"EgressService.items": families, "EgressService.sourceIPs": families,
		"EgressNode.holding": egretv1.MaxHolding, "EgressNode.heldAddresses": egretv1.MaxHolding,
		"EgressNode.steers": egretv1.MaxSteers, "EgressNode.objectSteers": egretv1.MaxSteers,
		"EgressNode.problems": egretv1.MaxProblems, "EgressNode.objectProblems": egretv1.MaxProblems,
		"EgressNode.conflicts": egretv1.MaxConflicts,
	}
	have := map[string]int64{}
	for _, object := range decodeAll(t, deploy.Manifests, "crd-*.yaml") {
		crd := object.(*apiextensionsv1.CustomResourceDefinition)
		status := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
		for field, s := range status.Properties {
			if s.MaxItems != nil {
				have[crd.Spec.Names.Kind+"."+field] = *s.MaxItems
			}
		}
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("bounds (-kept +in the schemas):\n%s", diff)
	}
}
