package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"

	apply "github.com/egret-net/egret/api/applyconfiguration/api/v1"
	v1 "github.com/egret-net/egret/api/v1"
)

// TestApply: two programs apply one EgressIP on the server's side. The object has what each of them gives. A field that
// the other one gives is a conflict, whose error names both, and a field that nobody gives any more is gone.
func TestApply(t *testing.T) {
	c := theCluster(t)
	const name = "applied"
	t.Cleanup(egressIP{t, c, name}.delete)
	labels := func(value string) *applymeta.LabelSelectorApplyConfiguration {
		return applymeta.LabelSelector().WithMatchLabels(map[string]string{"of": value})
	}
	c.apply(t, "network", apply.EgressIP(name).WithSpec(apply.EgressIPSpec().WithEgressIPs("192.0.2.78").
		WithNamespaceSelector(labels("nobody"))))
	team := apply.EgressIP(name).WithLabels(map[string]string{"team": "shop"})
	e := c.apply(t, "team", team.WithSpec(apply.EgressIPSpec().WithPodSelector(labels("web"))))
	if e.Labels["team"] != "shop" || e.Spec.PodSelector.MatchLabels["of"] != "web" ||
		e.Spec.NamespaceSelector.MatchLabels["of"] != "nobody" || strings.Join(e.Spec.EgressIPs, " ") != "192.0.2.78" {
		t.Errorf("of both programs the object has labels %v and spec %+v", e.Labels, e.Spec)
	}

	_, err := c.tryApply(t, "team", team.WithSpec(apply.EgressIPSpec().WithEgressIPs("192.0.2.79")))
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `"network": .spec.egressIPs`) {
		t.Errorf("the other program's address is replaced: %v", err)
	}
	if e = c.apply(t, "team", apply.EgressIP(name)); len(e.Labels)+len(e.Spec.PodSelector.MatchLabels) > 0 ||
		len(e.Spec.EgressIPs) != 1 {
		t.Errorf("when one program gives nothing any more the object has labels %v and spec %+v", e.Labels, e.Spec)
	}
}

func (c *cluster) apply(t *testing.T, manager string, e *apply.EgressIPApplyConfiguration) *v1.EgressIP {
	t.Helper()
	applied, err := c.tryApply(t, manager, e)
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

func (c *cluster) tryApply(t *testing.T, manager string, e *apply.EgressIPApplyConfiguration) (*v1.EgressIP, error) {
	t.Helper()
	body, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	applied := &v1.EgressIP{}
	return applied, c.kube.EgressIP.Patch(types.ApplyPatchType).Resource("egressips").Name(*e.GetName()).
		Param("fieldManager", manager).Body(body).Do(t.Context()).Into(applied)
}
