package demo

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
)

func TestReadyOn(t *testing.T) {
	object := func(status metav1.ConditionStatus, observed int64, node string) *v1.EgressIP {
		return &v1.EgressIP{
			ObjectMeta: metav1.ObjectMeta{Generation: 2},
			Status: v1.EgressIPStatus{
				Items:      []v1.EgressIPStatusItem{{Node: node, EgressIP: "172.18.0.33"}},
				Conditions: []metav1.Condition{{Type: v1.ConditionReady, Status: status, ObservedGeneration: observed}},
			},
		}
	}
	for name, c := range map[string]struct {
		object *v1.EgressIP
		ready  bool
	}{
		"ready":                  {object(metav1.ConditionTrue, 2, "n1"), true},
		"not looked at":          {&v1.EgressIP{ObjectMeta: metav1.ObjectMeta{Generation: 1}}, false},
		"ready of the former":    {object(metav1.ConditionTrue, 1, "n1"), false},
		"not ready":              {object(metav1.ConditionFalse, 2, "n1"), false},
		"ready on the wrong one": {object(metav1.ConditionTrue, 2, "n9"), false},
	} {
		if err := readyOn(c.object, []string{"n1", "n2"}); (err == nil) != c.ready {
			t.Errorf("%s: %v", name, err)
		}
	}
}
