package applyconfiguration_test

import (
	"bytes"
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/randfill"

	"github.com/egret-net/egret/api/applyconfiguration"
	v1 "github.com/egret-net/egret/api/v1"
)

// TestEveryFieldCanBeApplied finds a type that was changed without generating its apply configuration again: an object
// with a value in every field is the same object as an apply configuration, and the schema has its fields.
func TestEveryFieldCanBeApplied(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	schema := applyconfiguration.NewTypeConverter(scheme)
	for kind, object := range map[string]runtime.Object{
		"EgressIP": &v1.EgressIP{}, "EgressIPTraffic": &v1.EgressIPTraffic{}, "EgressService": &v1.EgressService{},
		"UserDefinedNetwork": &v1.UserDefinedNetwork{}, "ClusterUserDefinedNetwork": &v1.ClusterUserDefinedNetwork{},
	} {
		fillEveryField(object)
		object.GetObjectKind().SetGroupVersionKind(v1.GroupVersion.WithKind(kind))
		want, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		applied := applyconfiguration.ForKind(v1.GroupVersion.WithKind(kind))
		strict := json.NewDecoder(bytes.NewReader(want))
		strict.DisallowUnknownFields()
		if err := strict.Decode(applied); err != nil {
			t.Errorf("apply configuration of %s: %v: run go generate -C api ./...", kind, err)
		}
		if _, err := schema.ObjectToTyped(object); err != nil {
			t.Errorf("schema of %s: %v: run go generate -C api ./...", kind, err)
		}
	}
}

// fillEveryField gives each field of an object a value, and its metadata no more than a name.
func fillEveryField(object runtime.Object) {
	randfill.NewWithSeed(1).NilChance(0).NumElements(1, 1).Funcs(func(m *metav1.ObjectMeta, _ randfill.Continue) {
		m.Name = "e"
	}).Fill(object)
}
