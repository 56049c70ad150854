package crdtest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/crdtest"
)

const seedExample = `
apiVersion: k8s.ovn.org/v1
kind: EgressIP
metadata: {name: egressip-prod}
spec:
  egressIPs: [172.18.0.33, 172.18.0.44]
  namespaceSelector:
    matchExpressions: [{key: environment, operator: NotIn, values: [development]}]
  podSelector:
    matchLabels: {app: web}
`

// withSpec is an EgressIP with the given spec, as YAML in flow style.
func withSpec(spec string) string {
	return "{apiVersion: k8s.ovn.org/v1, kind: EgressIP, metadata: {name: e}, spec: " + spec + "}"
}

// withIPs is an EgressIP that selects everything and asks for ips.
func withIPs(ips ...string) string {
	quoted, _ := json.Marshal(ips)
	return withSpec(fmt.Sprintf("{egressIPs: %s, namespaceSelector: {}}", quoted))
}

// withNodes is an EgressIP with a selector of egress nodes.
func withNodes(selector string) string {
	return withSpec(fmt.Sprintf("{egressIPs: [172.18.0.33], namespaceSelector: {}, egressNodeSelector: %s}", selector))
}

func addresses(n int) []string {
	var ips []string
	for i := range n {
		ips = append(ips, fmt.Sprintf("fd00:0000:0000:0000:0000:0000:0000:%04x", i+1))
	}
	return ips
}

func TestAcceptedEgressIPs(t *testing.T) {
	crd := crdtest.Load(t, "egressips")
	for name, object := range map[string]string{
		"example of the documents":  seedExample,
		"both families":             withIPs("172.18.0.33", "fd00:18::33"),
		"long spelling":             withIPs("fd00:0018:0000:0000:0000:0000:0000:0033"),
		"every namespace":           withIPs("172.18.0.33"),
		"most addresses":            withIPs(addresses(64)...),
		"all operators":             withSpec(`{egressIPs: [172.18.0.33], namespaceSelector: {matchExpressions: [{key: a, operator: In, values: [x]}, {key: b, operator: Exists}, {key: c, operator: DoesNotExist}]}}`),
		"values empty, not absent":  withSpec(`{egressIPs: [172.18.0.33], namespaceSelector: {matchExpressions: [{key: b, operator: Exists, values: []}]}}`),
		"pod selector empty":        withSpec(`{egressIPs: [172.18.0.33], namespaceSelector: {}, podSelector: {}}`),
		"node selector":             withNodes(`{matchLabels: {zone: a}, matchExpressions: [{key: rack, operator: NotIn, values: [r1]}]}`),
		"node selector empty":       withNodes(`{}`),
		"traffic selector empty":    withSpec(`{egressIPs: [172.18.0.33], namespaceSelector: {}, trafficSelector: {}}`),
		"addresses outside RFC1918": withIPs("203.0.113.7", "2001:db8::7"),
	} {
		t.Run(name, func(t *testing.T) {
			if have := crd.Refusals(crdtest.Object(t, object)); len(have) > 0 {
				t.Errorf("refused: %v", have)
			}
		})
	}
}

func TestRefusedEgressIPs(t *testing.T) {
	crd := crdtest.Load(t, "egressips")
	const (
		notIP     = "is not an IP address: write one IPv4 or IPv6 address"
		notUsable = "cannot be a source outside the node"
	)
	for name, c := range map[string]struct{ object, want string }{
		"not an address":   {withIPs("172.18.0.33", "web"), `spec.egressIPs[1]: Invalid value: "web": ` + notIP},
		"prefix length":    {withIPs("172.18.0.33/16"), notIP},
		"octet too big":    {withIPs("172.18.0.256"), notIP},
		"leading zero":     {withIPs("172.18.0.033"), notIP},
		"zone":             {withIPs("fe80::1%eth0"), notIP},
		"IPv4-mapped":      {withIPs("::ffff:172.18.0.33"), notIP},
		"empty":            {withIPs(""), notIP},
		"too long":         {withIPs(strings.Repeat("1", 46)), "may not be more than 45"},
		"loopback":         {withIPs("127.0.0.1"), notUsable},
		"loopback IPv6":    {withIPs("::1"), notUsable},
		"unspecified":      {withIPs("0.0.0.0"), notUsable},
		"unspecified IPv6": {withIPs("::"), notUsable},
		"multicast":        {withIPs("224.0.0.5"), notUsable},
		"multicast IPv6":   {withIPs("ff02::1"), notUsable},
		"link-local":       {withIPs("169.254.1.1"), notUsable},
		"link-local IPv6":  {withIPs("fe80::1"), notUsable},
		"broadcast":        {withIPs("255.255.255.255"), notUsable},
		"repeated": {withIPs("172.18.0.33", "172.18.0.44", "172.18.0.33"),
			"spec.egressIPs: Invalid value"},
		"repeated, two ways": {withIPs("fd00::1", "172.18.0.33", "fd00:0::0:1"), "names an address more than once"},
		"no addresses": {withSpec(`{egressIPs: [], namespaceSelector: {}}`),
			"spec.egressIPs in body should have at least 1 items"},
		"addresses absent":     {withSpec(`{namespaceSelector: {}}`), "spec.egressIPs: Required value"},
		"too many":             {withIPs(addresses(65)...), "must have at most 64 items"},
		"no namespaceSelector": {withSpec(`{egressIPs: [172.18.0.33]}`), "spec.namespaceSelector: Required value"},
		"null selector": {withSpec(`{egressIPs: [172.18.0.33], namespaceSelector: null}`),
			"spec.namespaceSelector"},
		"spec absent": {`{apiVersion: k8s.ovn.org/v1, kind: EgressIP, metadata: {name: e}}`,
			"spec: Required value"},
		"unknown operator":      {withSpec(`{egressIPs: [172.18.0.33], namespaceSelector: {matchExpressions: [{key: a, operator: Equals, values: [x]}]}}`), "spec.namespaceSelector: Invalid value"},
		"In without values":     {withSpec(`{egressIPs: [172.18.0.33], namespaceSelector: {matchExpressions: [{key: a, operator: In}]}}`), "give In and NotIn at least one value"},
		"Exists with values":    {withSpec(`{egressIPs: [172.18.0.33], namespaceSelector: {}, podSelector: {matchExpressions: [{key: a, operator: Exists, values: [x]}]}}`), "spec.podSelector: Invalid value"},
		"traffic selector":      {withSpec(`{egressIPs: [172.18.0.33], namespaceSelector: {}, trafficSelector: {matchExpressions: [{key: a, operator: In}]}}`), "spec.trafficSelector: Invalid value"},
		"unknown pod operator":  {withSpec(`{egressIPs: [172.18.0.33], namespaceSelector: {}, podSelector: {matchExpressions: [{key: a, operator: in, values: [x]}]}}`), "use In, NotIn, Exists or DoesNotExist"},
		"unknown node operator": {withNodes(`{matchExpressions: [{key: zone, operator: Equals, values: [a]}]}`), "spec.egressNodeSelector: Invalid value"},
		"node values missing":   {withNodes(`{matchExpressions: [{key: zone, operator: NotIn}]}`), "give In and NotIn at least one value"},
		"node selector null":    {withNodes(`null`), "spec.egressNodeSelector"},
		"status without a node": {`{apiVersion: k8s.ovn.org/v1, kind: EgressIP, metadata: {name: e}, spec: {egressIPs: [172.18.0.33], namespaceSelector: {}}, status: {items: [{egressIP: 172.18.0.33}]}}`, "status.items[0].node: Required value"},
	} {
		t.Run(name, func(t *testing.T) {
			have := strings.Join(crd.Refusals(crdtest.Object(t, c.object)), "\n")
			if !strings.Contains(have, c.want) {
				t.Errorf("want a refusal with %q, have %q", c.want, have)
			}
		})
	}
}

// TestEgressIPSchemaHasEveryField finds a type that was changed without generating its CRD again.
func TestEgressIPSchemaHasEveryField(t *testing.T) {
	crd := crdtest.Load(t, "egressips")
	object := asMap(t, filled())
	if unknown := crd.Unknown(object); len(unknown) > 0 {
		t.Errorf("the CRD lacks %v: run go generate -C api ./...", unknown)
	}
	if refusals := crd.Refusals(object); len(refusals) > 0 {
		t.Errorf("refused: %v", refusals)
	}
}

func TestEgressIPColumns(t *testing.T) {
	crd := crdtest.Load(t, "egressips")
	const heading = "egressips eip | EgressIPs | Assigned Node | Assigned EgressIPs | Ready | Reason | Leaving | " +
		"Overlapped | Fallback | Age"
	if have := crd.Heading(); have != heading {
		t.Errorf("heading\nhave %s\nwant %s", have, heading)
	}
	const want = `e | ["172.18.0.33","172.18.0.44"] | n1,n2 | 172.18.0.33,172.18.0.44 | False | WaitingForNode | n3 | True | NodeIP | <nil>`
	if have := crd.Row(t, asMap(t, filled())); have != want {
		t.Errorf("row\nhave %s\nwant %s", have, want)
	}
}

// filled is an EgressIP with a value in every field.
func filled() *v1.EgressIP {
	selector := metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	return &v1.EgressIP{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "EgressIP"},
		ObjectMeta: metav1.ObjectMeta{Name: "e"},
		Spec: v1.EgressIPSpec{EgressIPs: []string{"172.18.0.33", "172.18.0.44"}, NamespaceSelector: selector,
			PodSelector: selector, EgressNodeSelector: selector, TrafficSelector: &selector},
		Status: v1.EgressIPStatus{
			Items: []v1.EgressIPStatusItem{{Node: "n1", EgressIP: "172.18.0.33"},
				{Node: "n2", EgressIP: "172.18.0.44"}},
			Leaving:           []v1.EgressIPLeaving{{Node: "n3", EgressIP: "172.18.0.44", Since: metav1.NowMicro()}},
			AssignedNodes:     "n1,n2",
			AssignedEgressIPs: "172.18.0.33,172.18.0.44",
			InForce:           []v1.IPFamily{v1.IPv4, v1.IPv6},
			Conditions: []metav1.Condition{
				{Type: v1.ConditionAssigned, Status: metav1.ConditionTrue, Reason: v1.ReasonAssigned,
					LastTransitionTime: metav1.Now()},
				{Type: v1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1.ReasonWaitingForNode,
					LastTransitionTime: metav1.Now()},
				{Type: v1.ConditionOverlapped, Status: metav1.ConditionTrue, Reason: v1.ReasonServedByOther,
					LastTransitionTime: metav1.Now()},
				{Type: v1.ConditionFallback, Status: metav1.ConditionTrue, Reason: v1.ReasonNodeIP,
					LastTransitionTime: metav1.Now()},
			},
		},
	}
}

func asMap(t *testing.T, object any) map[string]any {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return crdtest.Object(t, string(text))
}
