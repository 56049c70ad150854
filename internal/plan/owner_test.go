package plan_test

import (
	"testing"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
)

// TestOwnerText: an owner reads in logs and problems as its feature and its object's key.
func TestOwnerText(t *testing.T) {
	for want, o := range map[string]plan.Owner{
		"zone":                    {Feature: "zone"},
		"egressip/prod":           {Feature: "egressip", Object: ref.Of(ref.EgressIP, "prod")},
		"egressip-pod/shop/web-0": {Feature: "egressip-pod", Object: ref.Of(ref.Pod, "shop/web-0")},
	} {
		if have := o.String(); have != want {
			t.Errorf("%+v is written %q, want %q", o, have, want)
		}
	}
}

// TestOwnersOfOneText: owners that read the same are two.
func TestOwnersOfOneText(t *testing.T) {
	node := plan.Owner{Feature: "f", Object: ref.Of(ref.Node, "n")}
	pod := plan.Owner{Feature: "f", Object: ref.Of(ref.Pod, "n")}
	s, elem := plan.New(), plan.SetElem{Set: "s"}
	s.SetElems.Put(node, elem, plan.None{})
	s.SetElems.Put(pod, elem, plan.None{})
	if s.SetElems.Drop(node, elem); s.SetElems.Owner(elem) != pod {
		t.Errorf("it is of %+v", s.SetElems.Owner(elem))
	}
}
