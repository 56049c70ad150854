package kube

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
)

// TestStatusPatchesAreWhole: a write names every field of a status. A field that it left alone would have an altered
// status written without end.
func TestStatusPatchesAreWhole(t *testing.T) {
	for _, c := range []struct{ status, patch reflect.Type }{
		{reflect.TypeFor[v1.EgressIPStatus](), reflect.TypeFor[statusPatch]()},
		{reflect.TypeFor[v1.EgressServiceStatus](), reflect.TypeFor[hostingPatch]()},
	} {
		written, _ := c.patch.FieldByName("Status")
		for i := range c.status.NumField() {
			if name := c.status.Field(i).Name; !has(written.Type, name) {
				t.Errorf("a write of %s leaves field %s alone", c.status, name)
			}
		}
	}
}

func has(t reflect.Type, field string) bool {
	_, has := t.FieldByName(field)
	return has
}

// TestAlteredStatus: of what a status says, a write leaves what can be read, and that is not altered any more.
func TestAlteredStatus(t *testing.T) {
	now := metav1.NowMicro()
	o := &v1.EgressIP{Status: v1.EgressIPStatus{
		Items: []v1.EgressIPStatusItem{{Node: "n1", EgressIP: "192.0.2.7", Since: now},
			{Node: "/", EgressIP: "192.0.2.8"}, {Node: "n1", EgressIP: "192.0.2.7"}},
		AssignedNodes: "n7", Granted: []string{"x"}, InForce: []v1.IPFamily{v1.IPv6, v1.IPv4},
		Leaving: []v1.EgressIPLeaving{{Node: "n2", EgressIP: "192.0.2.7", Since: now}},
	}}
	s := &v1.EgressService{Status: v1.EgressServiceStatus{
		Host: "n1", SourceIPs: []string{"192.0.2.7", "192.0.2.8", "x"}, AssignedSourceIPs: "x",
		Items: []v1.EgressServiceStatusItem{{Node: "n1", SourceIP: "192.0.2.7", Since: now},
			{Node: "n9", SourceIP: "192.0.2.7", Since: now}},
	}}
	for _, altered := range []bool{true, false} {
		if have := EgressIP(o).Altered; have != altered {
			t.Errorf("EgressIP is altered: %v, want %v: %+v", have, altered, o.Status)
		}
		if have := EgressService(s).Altered; have != altered {
			t.Errorf("EgressService is altered: %v, want %v: %+v", have, altered, s.Status)
		}
		o.Status, s.Status = EgressIPStatus(EgressIP(o)), EgressServiceStatus(EgressService(s))
	}
	if !equality.Semantic.DeepEqual(o.Status, EgressIPStatus(EgressIP(o))) {
		t.Error("a write of what was read is not what is read of it")
	}
}
