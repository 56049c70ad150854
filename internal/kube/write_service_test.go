package kube

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/world"
)

// TestWriteService: a condition of a Service that is the controller's comes, changes and goes, whatever
// metadata.managedFields say of who owns it: who may write the Service can empty these. Others' conditions stay.
func TestWriteService(t *testing.T) {
	at := metav1.NewTime(time.Unix(1e9, 0))
	others := metav1.Condition{Type: "example.org/Other", Status: metav1.ConditionTrue, LastTransitionTime: at}
	refused := func(message string) metav1.Condition {
		return metav1.Condition{Type: v1.ConditionRefused, Status: metav1.ConditionTrue, Reason: v1.ReasonRefused,
			Message: message, LastTransitionTime: at}
	}
	garbled := refused("x")
	garbled.ObservedGeneration = 7
	for _, x := range [][2][]metav1.Condition{
		{nil, {refused("a")}}, {{others}, {refused("a"), others}}, {{refused("a")}, nil},
		{{others, refused("a")}, {others}}, {{garbled, others}, {refused("a"), others}},
	} {
		o := corev1.Service{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.9"},
			Status: corev1.ServiceStatus{Conditions: x[0]}}
		shown := Service(&o, nil)
		should := *shown
		should.Conditions = convertConditions(x[1])
		text, err := json.Marshal(o)
		must(t, err)
		text, err = strategicpatch.StrategicMergePatch(text, writeService(shown, &should).Patch(at.Time).Body, o)
		must(t, err)
		var have corev1.Service
		must(t, json.Unmarshal(text, &have))
		byType := map[string]world.Condition{}
		for _, c := range Service(&have, nil).Conditions {
			byType[c.Type] = c
		}
		want := map[string]world.Condition{}
		for _, c := range should.Conditions {
			want[c.Type] = c
		}
		if d := cmp.Diff(want, byType); d != "" {
			t.Errorf("%v is to be %v (-want +have):\n%s", x[0], x[1], d)
		}
	}
}
