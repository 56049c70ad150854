package crdtest_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/crdtest"
)

func egressService(spec string) string {
	return "{apiVersion: k8s.ovn.org/v1, kind: EgressService, metadata: {name: e, namespace: n}, spec: " + spec + "}"
}

func TestAcceptedEgressServices(t *testing.T) {
	crd := crdtest.Load(t, "egressservices")
	for name, object := range map[string]string{
		"example of the documents": egressService(`{sourceIPBy: "LoadBalancerIP", nodeSelector: {matchLabels: {color: green}}}`),
		"nothing":                  egressService(`{}`),
		"no spec":                  "{apiVersion: k8s.ovn.org/v1, kind: EgressService, metadata: {name: e, namespace: n}}",
		"a VRF":                    egressService(`{sourceIPBy: Network, network: blue}`),
		"a number":                 egressService(`{sourceIPBy: Network, network: "100"}`),
		"the last number":          egressService(`{network: "2097151"}`),
		"digits in front":          egressService(`{network: 100-vrf.a_b}`),
		"the host's own routing":   egressService(`{sourceIPBy: Network}`),
		"an empty network":         egressService(`{network: ""}`),
		"a long name":              egressService(`{network: ` + strings.Repeat("a", 63) + `}`),
	} {
		t.Run(name, func(t *testing.T) {
			if have := crd.Refusals(crdtest.Object(t, object)); len(have) > 0 {
				t.Errorf("refused: %v", have)
			}
		})
	}
}

func TestRefusedEgressServices(t *testing.T) {
	crd := crdtest.Load(t, "egressservices")
	const noTable, noNumber = "is no routing table", "is no number of a routing table"
	for name, c := range map[string]struct{ object, want string }{
		"another mode":     {egressService(`{sourceIPBy: NodeIP}`), `spec.sourceIPBy: Unsupported value: "NodeIP"`},
		"table zero":       {egressService(`{network: "0"}`), noNumber},
		"leading zeros":    {egressService(`{network: "010"}`), noNumber},
		"a huge number":    {egressService(`{network: "2097152"}`), noNumber},
		"more digits":      {egressService(`{network: "99999999999"}`), noNumber},
		"hexadecimal":      {egressService(`{network: "0x64"}`), "is ambiguous"},
		"spaces":           {egressService(`{network: "blue lookup main"}`), noTable},
		"an option":        {egressService(`{network: "-6"}`), noTable},
		"a path":           {egressService(`{network: "../blue"}`), noTable},
		"a long text":      {egressService(`{network: ` + strings.Repeat("a", 64) + `}`), "may not be more than 63"},
		"unknown operator": {egressService(`{nodeSelector: {matchExpressions: [{key: a, operator: Near, values: [x]}]}}`), "has an unknown operator"},
		"values missing":   {egressService(`{nodeSelector: {matchExpressions: [{key: a, operator: In}]}}`), "has values that do not go with the operator"},
	} {
		t.Run(name, func(t *testing.T) {
			have := strings.Join(crd.Refusals(crdtest.Object(t, c.object)), "\n")
			if !strings.Contains(have, c.want) {
				t.Errorf("want a refusal with %q, have %.300q", c.want, have)
			}
		})
	}
}

// TestEgressServiceRow: as kubectl get shows it, and no field of the type is missing in the CRD.
func TestEgressServiceRow(t *testing.T) {
	crd := crdtest.Load(t, "egressservices")
	object := asMap(t, &v1.EgressService{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "EgressService"},
		ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "n"},
		Spec: v1.EgressServiceSpec{SourceIPBy: v1.SourceIPLoadBalancer, Network: "blue",
			NodeSelector: metav1.LabelSelector{MatchLabels: map[string]string{"color": "green"}}},
		Status: v1.EgressServiceStatus{Host: "n1", SourceIPs: []string{"172.18.0.100", "fd00::1"},
			AssignedSourceIPs: "172.18.0.100,fd00::1",
			InForce:           []v1.IPFamily{v1.IPv4},
			Leaving:           []v1.EgressServiceLeaving{{Node: "n2", SourceIP: "172.18.0.100"}},
			Conditions:        []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Held"}}},
	})
	if unknown := crd.Unknown(object); len(unknown) > 0 {
		t.Errorf("the CRD lacks %v: run go generate -C api ./...", unknown)
	}
	const heading = "egressservices | Assigned Host | Source IPs | Network | Ready | Reason | Leaving | Overlapped | " +
		"Fallback | Age"
	if have := crd.Heading(); have != heading {
		t.Errorf("heading\nhave %s\nwant %s", have, heading)
	}
	const want = "e | n1 | 172.18.0.100,fd00::1 | blue | True | Held | n2 | <nil> | <nil> | <nil>"
	if have := crd.Row(t, object); have != want {
		t.Errorf("row\nhave %s\nwant %s", have, want)
	}
}
