package kube_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
)

// TestTraffic: what can be read of an object is read, however it is written; what cannot is named.
func TestTraffic(t *testing.T) {
	for text, want := range map[string]struct{ networks, problem string }{
		"":                                   {"", ""},
		"10.20.7.9/16 10.20.0.0/24 fd00::/8": {"10.20.0.0/16,fd00::/8", ""},
		"10.0.0.0/9 10.128.0.0/9":            {"10.0.0.0/8", ""},
		"0.0.0.0/0 ::/0":                     {"0.0.0.0/0,::/0", ""},
		"web 10.0.0.0/8":                     {"10.0.0.0/8", `spec.destinationNetworks[0]: "web" is not a network`},
		"::ffff:10.0.0.0/104":                {"", "is not a network"},
		"10.0.0.1":                           {"", "is not a network"},
	} {
		var list []v1.CIDR
		for _, n := range strings.Fields(text) {
			list = append(list, v1.CIDR(n))
		}
		o := kube.Traffic(&v1.EgressIPTraffic{
			ObjectMeta: metav1.ObjectMeta{Name: "t", Labels: map[string]string{"a": "b"}},
			Spec:       v1.EgressIPTrafficSpec{DestinationNetworks: list},
		})
		said := strings.Join(o.Problems, "\n")
		if o.Networks.String() != want.networks || !strings.Contains(said, want.problem) ||
			want.problem == "" && said != "" || o.Name != "t" || o.Labels["a"] != "b" {
			t.Errorf("%q: have %v %q, want %v", text, o.Networks, said, want)
		}
	}
}

// TestTrafficIsBounded: more networks than the CRD lets pass are not read, and few of many problems are kept.
func TestTrafficIsBounded(t *testing.T) {
	var many, bad []v1.CIDR
	for i := range 10001 {
		many, bad = append(many, v1.CIDR(fmt.Sprintf("10.%d.%d.0/32", i>>8, i&255))), append(bad, "web")
	}
	o := kube.Traffic(&v1.EgressIPTraffic{Spec: v1.EgressIPTrafficSpec{DestinationNetworks: many}})
	if len(o.Networks) != 10000 || len(o.Problems) != 1 {
		t.Errorf("%d networks, %v", len(o.Networks), o.Problems)
	}
	o = kube.Traffic(&v1.EgressIPTraffic{Spec: v1.EgressIPTrafficSpec{DestinationNetworks: bad}})
	if len(o.Problems) > 8 {
		t.Errorf("%d problems", len(o.Problems))
	}
}

// TestTrafficSelector: absent, empty, and one that is none.
func TestTrafficSelector(t *testing.T) {
	for want, s := range map[string]*metav1.LabelSelector{
		"<nil>": nil, "": {}, "a=b": {MatchLabels: map[string]string{"a": "b"}},
	} {
		e := kube.EgressIP(&v1.EgressIP{Spec: v1.EgressIPSpec{TrafficSelector: s}})
		if have := fmt.Sprint(e.Traffic); have != want || e.SelectorProblem != "" {
			t.Errorf("have %q, want %q; %s", have, want, e.SelectorProblem)
		}
	}
	e := kube.EgressIP(&v1.EgressIP{Spec: v1.EgressIPSpec{
		TrafficSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"-": ""}}}})
	if !strings.HasPrefix(e.TrafficProblem, "spec.trafficSelector: ") || !e.TrafficUnknown || e.SelectorProblem != "" ||
		!e.Pods.Matches(nil) {
		t.Errorf("problem %q, unknown: %t; pods are selected by %s", e.TrafficProblem, e.TrafficUnknown, e.Pods)
	}
}
