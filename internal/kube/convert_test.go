package kube

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/world"
)

func mustPrefixes(s ...string) []netip.Prefix {
	ps, err := parsePrefixes(s)
	if err != nil {
		panic(err)
	}
	return ps
}

func annotated(annotations map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: "7", Annotations: annotations}}
}

// A node without an agent has the addresses that its kubelet tells of; with one, those that its agent tells of.
func TestNodeWithoutAgent(t *testing.T) {
	o := annotated(nil)
	o.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: "172.18.0.9"}, {Type: corev1.NodeHostName, Address: "n1"},
		{Type: corev1.NodeExternalIP, Address: "198.51.100.9"},
		{Type: corev1.NodeInternalIP, Address: "fc00:f853:ccd:e793::9"},
	}
	if have := fmt.Sprint(Node(o).HostAddrs); have != "[172.18.0.9 fc00:f853:ccd:e793::9]" {
		t.Errorf("without: %s", have)
	}
	o.Annotations = map[string]string{v1.AnnotationHostCIDRs: `["10.0.0.9/24"]`}
	if have := fmt.Sprint(Node(o).HostAddrs); have != "[10.0.0.9]" {
		t.Errorf("with: %s", have)
	}
}

func TestNode(t *testing.T) {
	o := annotated(map[string]string{
		v1.AnnotationNodeID: "2", v1.AnnotationNodeChassisID: "n1",
		v1.AnnotationNodeSubnets:                 `{"default":["10.244.1.0/24","fd00:10:244:1::/64"]}`,
		v1.AnnotationNodePrimaryIfaddr:           `{"ipv4":"172.18.0.2/24","ipv6":"fd00:18::2/64"}`,
		v1.AnnotationHostCIDRs:                   `["172.18.0.2/24","192.168.1.2/24"]`,
		v1.AnnotationL3GatewayConfig:             `{"default":{"mode":"shared","bridge-id":"breth0","ip-address":"172.18.0.2/24","next-hops":["172.18.0.1"]}}`,
		v1.AnnotationNodeGatewayRouterLRPIfaddrs: `{"default":{"ipv4":"100.64.0.2/16"}}`,
		v1.AnnotationNodeTransitSwitchPortIfaddr: `{"ipv4":"100.88.0.2/16"}`,
	})
	o.Labels = map[string]string{"a": "b"}
	o.Status.NodeInfo.BootID = "boot"
	o.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: "False"},
		{Type: corev1.NodeReady, Status: "True"}}
	want := &world.Node{
		Name: "n1", Labels: o.Labels, ID: 2, ChassisID: "n1", Ready: true, BootID: "boot", Version: "7",
		Subnets: mustPrefixes("10.244.1.0/24", "fd00:10:244:1::/64"), Primary: mustPrefixes("172.18.0.2/24",
			"fd00:18::2/64"),
		HostAddrs: []netip.Addr{netip.MustParseAddr("172.18.0.2"), netip.MustParseAddr("192.168.1.2")},
		CIDRs:     mustPrefixes("172.18.0.2/24", "192.168.1.2/24"),
		Gateways:  []netip.Addr{netip.MustParseAddr("172.18.0.1")},
		Join:      mustPrefixes("100.64.0.2/16"), Transit: mustPrefixes("100.88.0.2/16"),
		Published: Published(o.Annotations),
	}
	if have := Node(o); !reflect.DeepEqual(have, want) {
		t.Errorf("have %+v\nwant %+v", have, want)
	}
	now := metav1.Now()
	o.DeletionTimestamp, o.Status.Conditions[1].Status = &now, "Unknown"
	if have := Node(o); !have.Deleting || have.Ready {
		t.Errorf("have %+v", have)
	}
	o.DeletionTimestamp, o.Spec.Taints = nil, []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler"}}
	if have := Node(o); !have.Deleting {
		t.Errorf("about to go: have %+v", have)
	}
	if o.Spec.Taints[0].Key = "DeletionCandidateOfClusterAutoscaler"; Node(o).Deleting {
		t.Error("a node that is not drained yet counts as one that is about to go")
	}
}

func TestNodeWithoutAnnotations(t *testing.T) {
	if have, want := Node(annotated(nil)), (&world.Node{Name: "n1", Version: "7",
		Published: Published(nil)}); !reflect.DeepEqual(have, want) {
		t.Errorf("have %+v", have)
	}
}

func TestNodeSubnetForms(t *testing.T) {
	for _, text := range []string{`10.244.1.0/24`, `{"default":"10.244.1.0/24"}`, `{"default":["10.244.1.0/24"]}`,
		`{"default":["10.244.1.0/24"],"blue":["10.9.0.0/24"]}`} {
		n := Node(annotated(map[string]string{v1.AnnotationNodeSubnets: text}))
		if !reflect.DeepEqual(n.Subnets, mustPrefixes("10.244.1.0/24")) || len(n.Problems) > 0 {
			t.Errorf("%s: %v, %v", text, n.Subnets, n.Problems)
		}
	}
}

func TestGarbageAnnotations(t *testing.T) {
	for key, text := range map[string]string{
		v1.AnnotationNodeID: "-1", v1.AnnotationNodeSubnets: `{"default":["10.244.1.0/24","x"]}`,
		v1.AnnotationNodePrimaryIfaddr: `[]`,
		v1.AnnotationHostCIDRs:         `{`, v1.AnnotationL3GatewayConfig: `{"default":[]}`,
		v1.AnnotationNodeGatewayRouterLRPIfaddrs: `{"default":{"ipv4":"1"}}`,
		v1.AnnotationNodeTransitSwitchPortIfaddr: "",
	} {
		n := Node(annotated(map[string]string{key: text, v1.AnnotationNodeChassisID: "n1"}))
		if len(n.Problems) != 1 || !strings.Contains(n.Problems[0].Text, key) || n.ChassisID != "n1" {
			t.Errorf("%s: %+v", key, n)
		}
		if key == v1.AnnotationNodeSubnets && len(n.Subnets) != 1 {
			t.Errorf("what could be read is gone: %v", n.Subnets)
		}
	}
}

// Whatever annotations and addresses say, conversion ends.
func TestConversionsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{`{"default":null}`, `{"default":[null]}`,
			`[null]`, `null`, `{"default":{"next-hops":[null,""]}}`,
			`{"ipv4":null}`, `"x"`, `9999999999999999999`, `{"default":{"ip_addresses":["::ffff:1.2.3.4/120"]}}`,
			`fe80::1%eth0`, `1.2.3.4/33`})).Draw(t, "text")
		all := map[string]string{v1.AnnotationPodNetworks: text}
		for _, r := range nodeReaders {
			all[r.annotation] = text
		}
		Node(annotated(all))
		Pod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: all}, Status: corev1.PodStatus{PodIP: text}})
		EgressIP(&v1.EgressIP{Spec: v1.EgressIPSpec{EgressIPs: []string{text},
			PodSelector:        metav1.LabelSelector{MatchLabels: map[string]string{text: text}},
			EgressNodeSelector: metav1.LabelSelector{MatchLabels: map[string]string{text: text}}},
			Status: v1.EgressIPStatus{Items: []v1.EgressIPStatusItem{{Node: "n", EgressIP: text}}}})
		Holding(&egretv1.EgressNode{Status: egretv1.EgressNodeStatus{BootID: "b",
			Holding: []egretv1.Held{{EgressIP: "e", IP: text}}}})
		Service(&corev1.Service{Spec: corev1.ServiceSpec{ClusterIPs: []string{text},
			Ports: []corev1.ServicePort{{Port: -3}}}},
			[]*discoveryv1.EndpointSlice{{Endpoints: []discoveryv1.Endpoint{{Addresses: []string{text}}},
				Ports: []discoveryv1.EndpointPort{{}}}})
	})
}

func TestAllocationAnnotationsComeBack(t *testing.T) {
	subnets, join, transit := mustPrefixes("10.244.1.0/24", "fd00:10:244:1::/64"), mustPrefixes("100.64.0.2/16",
		"fd98::2/64"), mustPrefixes("100.88.0.2/16", "fd97::2/64")
	further := map[string]world.NodeNetwork{"blue": {Subnets: mustPrefixes("10.244.1.0/24")}}
	n := Node(annotated(AllocationAnnotations(world.Allocation{ID: 2, Subnets: subnets, Further: further, Join: join,
		Transit: transit})))
	want := &world.Node{Name: "n1", Version: "7", Published: Published(nil), ID: 2, Subnets: subnets, Further: further,
		Join: join, Transit: transit}
	if !reflect.DeepEqual(n, want) {
		t.Errorf("have %+v", n)
	}
	if have := AllocationAnnotations(world.Allocation{Subnets: subnets, Join: join}); len(have) != 1 {
		t.Errorf("without an id: %v", have)
	}
}

func TestRecordComesBack(t *testing.T) {
	mac, err := world.ParseHardwareAddr("0a:58:ac:12:00:02")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []world.Record{{}, {Addrs: []netip.Addr{netip.MustParseAddr("172.18.0.2"),
		netip.MustParseAddr("fd00:18::2")}}, {MAC: mac}} {
		n := Node(annotated(map[string]string{v1.AnnotationRecordedAddresses: RecordAnnotation(r)}))
		if !n.Record.Same(r) || len(n.Problems) > 0 {
			t.Errorf("%+v came back as %+v, %v", r, n.Record, n.Problems)
		}
	}
	for _, garbage := range []string{"", "x", `{"addresses":["x"]}`, `{"mac-address":"33:33:00:00:00:02"}`} {
		n := Node(annotated(map[string]string{v1.AnnotationRecordedAddresses: garbage}))
		if !n.Record.Same(world.Record{}) || len(n.Problems) != 1 {
			t.Errorf("%q: %+v, %v", garbage, n.Record, n.Problems)
		}
	}
}

// TestConfirmedNetworks: what people confirm is read as networks, by whatever address of it they name it.
func TestConfirmedNetworks(t *testing.T) {
	n := Node(annotated(map[string]string{v1.AnnotationSecondaryNetworks: "172.18.5.7/24,fd00:18:5::/64"}))
	for _, p := range mustPrefixes("172.18.5.0/24", "fd00:18:5::/64") {
		if !n.Confirms(p) || len(n.Problems) > 0 {
			t.Errorf("%s is not confirmed: %v, problems %q", p, n.Confirmed, n.Problems)
		}
	}
	if n = Node(annotated(map[string]string{v1.AnnotationSecondaryNetworks: "172.18.5.0"})); len(n.Confirmed) > 0 ||
		len(n.Problems) != 1 {
		t.Errorf("an address is taken for a network: %+v", n)
	}
}

// TestExternalIPs: people let Services name a node's addresses with "true" alone.
func TestExternalIPs(t *testing.T) {
	for text, x := range map[string]struct {
		lets     bool
		problems int
	}{"true": {true, 0}, "false": {false, 0}, "": {false, 1}, "yes": {false, 1}} {
		n := Node(annotated(map[string]string{v1.AnnotationExternalIPs: text}))
		if n.LetsExternalIPs != x.lets || len(n.Problems) != x.problems {
			t.Errorf("%q: %t, problems %q", text, n.LetsExternalIPs, n.Problems)
		}
	}
}

func TestCordon(t *testing.T) {
	for text, boot := range map[string]string{"": "", "maintenance": "", v1.EgressCordonShutdown + "b1": "b1"} {
		if n := Node(annotated(map[string]string{v1.AnnotationEgressCordon: text})); !n.Cordoned ||
			n.CordonBoot != boot || len(n.Problems) > 0 {
			t.Errorf("%q: have %+v", text, n)
		}
	}
	if Node(annotated(nil)).Cordoned {
		t.Error("cordoned without the annotation")
	}
}

func TestHostAnnotationsComeBack(t *testing.T) {
	h := HostFacts{Zone: "n1", ChassisID: "n1", Mode: world.LocalGateway, Bridge: "breth0",
		UplinkMAC: "0a:58:ac:12:00:02", ManagementMAC: "0a:58:0a:f4:01:02",
		Primary: mustPrefixes("172.18.0.2/24"), HostCIDRs: mustPrefixes("192.168.0.2/24", "172.18.0.2/24"),
		Gateways: []netip.Addr{netip.MustParseAddr("172.18.0.1")}}
	a := HostAnnotations(h)
	n := Node(annotated(a))
	if n.ChassisID != "n1" || n.UplinkMAC.String() != h.UplinkMAC || !reflect.DeepEqual(n.Primary, h.Primary) ||
		fmt.Sprint(n.HostAddrs) != "[172.18.0.2 192.168.0.2]" || fmt.Sprint(n.Gateways) != "[172.18.0.1]" ||
		len(n.Problems) > 0 {
		t.Errorf("have %+v", n)
	}
	if a[v1.AnnotationZoneName] != "n1" || !strings.Contains(a[v1.AnnotationL3GatewayConfig],
		`"interface-id":"breth0_n1"`) {
		t.Errorf("have %v", a)
	}
}

func TestPodAddresses(t *testing.T) {
	status := corev1.PodStatus{PodIP: "10.244.1.9", PodIPs: []corev1.PodIP{{IP: "10.244.1.9"},
		{IP: "fd00:10:244:1::9"}}}
	for text, want := range map[string]string{
		"":  "[10.244.1.9 fd00:10:244:1::9]",
		"{": "[10.244.1.9 fd00:10:244:1::9]",
		`{"blue":{"ip_addresses":["10.9.0.5/24"]}}`:      "[10.244.1.9 fd00:10:244:1::9]",
		`{"default":{"ip_addresses":["10.244.1.5/24"]}}`: "[10.244.1.5]",
		PodAnnotations(mustPrefixes("10.244.1.5/24", "fd00:10:244:1::5/64"), "0a:58:0a:f4:01:05",
			nil)[v1.AnnotationPodNetworks]: "[10.244.1.5 fd00:10:244:1::5]",
	} {
		meta := metav1.ObjectMeta{Annotations: map[string]string{v1.AnnotationPodNetworks: text}}
		p := Pod(&corev1.Pod{ObjectMeta: meta, Status: status})
		if have := fmt.Sprint(p.IPs); have != want {
			t.Errorf("%s: have %s, want %s", text, have, want)
		}
	}
	for phase, want := range map[corev1.PodPhase]bool{corev1.PodSucceeded: true, corev1.PodFailed: true,
		corev1.PodRunning: false} {
		if have := Pod(&corev1.Pod{Status: corev1.PodStatus{Phase: phase}}).Completed; have != want {
			t.Errorf("%s: completed %v", phase, have)
		}
	}
	if p := Pod(&corev1.Pod{}); len(p.IPs) != 0 {
		t.Errorf("without address: %v", p.IPs)
	}
}

// TestPodInterfaces: what is not what an agent writes for a pod of that namespace is no interface.
func TestPodInterfaces(t *testing.T) {
	const good = `"shop/blue":{"ip_addresses":["10.9.0.5/24","fd09::5/64"],"mac_address":"0a:58:0a:09:00:05",` +
		`"role":"primary","network":"cluster_udn_blue"}`
	const want = "[{cluster_udn_blue 0a:58:0a:09:00:05 [10.9.0.5 fd09::5]}]"
	full := good
	for i := range maxPodNetworks {
		full += fmt.Sprintf(`,"shop/%d":{}`, i)
	}
	for text, want := range map[string]string{
		"": "[]", "{" + good: "[]", "{" + full + "}": "[]",
		"{" + good + "}": want,
		`{"default":{"ip_addresses":["10.244.1.5/24"],"role":"infrastructure-locked"},` + good + "}": want,
		"{" + strings.Replace(good, "shop/", "other/", 1) + "}":                                      "[]",
		"{" + strings.Replace(good, "primary", "secondary", 1) + "}":                                 "[]",
		"{" + strings.Replace(good, "cluster_udn_blue", "default", 1) + "}":                          "[]",
		"{" + strings.Replace(good, "cluster_udn_blue", "", 1) + "}":                                 "[]",
		"{" + strings.Replace(good, "_udn_", strings.Repeat("x", maxNetworkName), 1) + "}":           "[]",
		"{" + strings.Replace(good, "0a:58", "0b:58", 1) + "}":                                       "[]",
		"{" + strings.Replace(good, "0a:58", `0a unknown`, 1) + "}":                                  "[]",
		"{" + strings.Replace(good, "10.9.0.5/24", "10.9.0.500/24", 1) + "}":                         "[]",
	} {
		meta := metav1.ObjectMeta{Namespace: "shop", Annotations: map[string]string{v1.AnnotationPodNetworks: text}}
		if have := fmt.Sprint(Pod(&corev1.Pod{ObjectMeta: meta}).Further); have != want {
			t.Errorf("%s: have %s, want %s", text, have, want)
		}
	}
}

func TestEgressIP(t *testing.T) {
	o := &v1.EgressIP{ObjectMeta: metav1.ObjectMeta{Name: "e",
		Annotations: map[string]string{v1.AnnotationWhenUnassigned: "drop"}},
		Spec: v1.EgressIPSpec{EgressIPs: []string{"172.18.0.33", "web", "::ffff:172.18.0.33", "FD00::0:1",
			"fe80::1%eth0"},
			NamespaceSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "environment", Operator: "NotIn", Values: []string{"development"}}}}}}
	e := EgressIP(o)
	if have := fmt.Sprint(e.IPs); have != "[172.18.0.33 fd00::1]" || len(e.Problems) != 3 || !e.DropWhenUnassigned ||
		e.SelectorProblem != "" {
		t.Errorf("have %+v", e)
	}
	if !strings.Contains(e.Problems[0], `spec.egressIPs[1]: "web"`) || !strings.Contains(e.Problems[1], "named twice") {
		t.Errorf("problems: %v", e.Problems)
	}
	if !e.Namespaces.Matches(labels.Set{}) || e.Namespaces.Matches(labels.Set{"environment": "development"}) ||
		!e.Pods.Matches(labels.Set{"x": "y"}) {
		t.Errorf("selectors: %v, %v", e.Namespaces, e.Pods)
	}
	o.Spec.PodSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}
	if e = EgressIP(o); e.SelectorProblem == "" || e.Namespaces.Matches(labels.Set{}) || e.Pods.Matches(labels.Set{}) {
		t.Errorf("a bad selector selects: %+v", e)
	}
}

// TestEgressNodeSelector: absent or empty it matches every node; one that cannot be read matches none, is said, and
// keeps pods selected.
func TestEgressNodeSelector(t *testing.T) {
	a, b := &world.Node{Labels: map[string]string{"zone": "a"}}, &world.Node{}
	near := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	for name, c := range map[string]struct {
		selector metav1.LabelSelector
		a, b     bool
		problem  string
	}{
		"absent": {metav1.LabelSelector{}, true, true, ""},
		"empty":  {metav1.LabelSelector{MatchLabels: map[string]string{}}, true, true, ""},
		"zone":   {metav1.LabelSelector{MatchLabels: map[string]string{"zone": "a"}}, true, false, ""},
		"operator": {near, false, false,
			`spec.egressNodeSelector: "Near" is not a valid label selector operator: mend`},
		"key": {metav1.LabelSelector{MatchLabels: map[string]string{"my zone": "a"}}, false, false,
			"spec.egressNodeSelector: key: Invalid value"},
		"value": {metav1.LabelSelector{MatchLabels: map[string]string{"zone": strings.Repeat("a", 1<<20)}}, false,
			false, "spec.egressNodeSelector: values[0][zone]: Invalid value"},
	} {
		e := EgressIP(&v1.EgressIP{Spec: v1.EgressIPSpec{EgressIPs: []string{"172.18.0.33"},
			EgressNodeSelector: c.selector}})
		if e.Nodes.SelectsNode(a) != c.a || e.Nodes.SelectsNode(b) != c.b {
			t.Errorf("%s: matches %t, %t", name, e.Nodes.SelectsNode(a), e.Nodes.SelectsNode(b))
		}
		if p := e.Nodes.Problem; !strings.HasPrefix(p, c.problem) || (p == "") != (c.problem == "") || len(p) > 1024 {
			t.Errorf("%s: problem %.300q, want %q", name, p, c.problem)
		}
		if !e.Pods.Matches(labels.Set{}) || e.SelectorProblem != "" || len(e.IPs) != 1 {
			t.Errorf("%s: the rest is %+v", name, e)
		}
	}
}

func TestStatusComesBack(t *testing.T) {
	items := []world.Assignment{{Node: "n1", IP: netip.MustParseAddr("172.18.0.33")},
		{Node: "n2", IP: netip.MustParseAddr("fd00::1")}}
	e := &world.EgressIP{Placement: world.Placement{Items: items, InForce: [2]bool{false, true}},
		Conditions: []world.Condition{{Type: "Ready", Status: "True", Reason: "Held", Message: "m", Generation: 3,
			Since: metav1.Unix(5, 0).Time}}}
	s := EgressIPStatus(e)
	if s.AssignedNodes != "n1,n2" || s.AssignedEgressIPs != "172.18.0.33,fd00::1" {
		t.Errorf("have %+v", s)
	}
	body, err := json.Marshal(&v1.EgressIP{Status: s})
	if err != nil {
		t.Fatal(err)
	}
	var o v1.EgressIP
	if err := json.Unmarshal(body, &o); err != nil {
		t.Fatal(err)
	}
	have := EgressIP(&o)
	if !reflect.DeepEqual(have.Items, e.Items) || have.InForce != e.InForce ||
		!have.Conditions[0].Since.Equal(e.Conditions[0].Since) || have.Conditions[0].Generation != 3 {
		t.Errorf("have %+v", have)
	}
}

func TestHolding(t *testing.T) {
	h := &world.Holding{Node: "n1", BootID: "b", Holds: map[string][]netip.Addr{"f": {netip.MustParseAddr("172.18.0.9"),
		netip.MustParseAddr("172.18.0.8")}, "e": {netip.MustParseAddr("fd00::1")}}}
	o := EgressNode(h, "uid", "v1", nil)
	if o.Status.HoldingCount != 3 || o.Status.HeldIPs != "fd00::1,172.18.0.8,172.18.0.9" ||
		o.OwnerReferences[0].UID != "uid" || o.Status.Holding[1].IP != "172.18.0.8" {
		t.Errorf("have %+v", o)
	}
	have := Holding(o)
	if fmt.Sprint(have.Holds) != "map[e:[fd00::1] f:[172.18.0.8 172.18.0.9]]" || have.BootID != "b" ||
		have.Node != "n1" {
		t.Errorf("have %+v", have)
	}
}

func slice(name, port string, number int32, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: name,
		Labels: map[string]string{discoveryv1.LabelServiceName: "s"}},
		Ports: []discoveryv1.EndpointPort{{Name: &port, Port: &number}}, Endpoints: endpoints}
}

func backend(ip string, ready, terminating bool) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: []string{ip}, Conditions: discoveryv1.EndpointConditions{Ready: &ready,
		Terminating: &terminating}}
}

func TestService(t *testing.T) {
	o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "s"}, Spec: corev1.ServiceSpec{
		ClusterIP: "10.96.0.9", ClusterIPs: []string{"10.96.0.9", "fd00:10:96::9"},
		Ports: []corev1.ServicePort{{Name: "web", Port: 80}, {Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}},
	}}
	slices := []*discoveryv1.EndpointSlice{
		slice("a", "web", 8080, backend("10.244.2.5", true, false), backend("10.244.1.5", true, false),
			backend("10.244.1.6", false, false), backend("10.244.1.7", true, true)),
		slice("b", "web", 8080, backend("fd00::5", true, false),
			discoveryv1.Endpoint{Addresses: []string{"10.244.1.5"}}),
	}
	have := fmt.Sprintf("%+v", Service(o, slices).Ports)
	want := "[{Name:web Protocol:tcp Port:80 NodePort:0 Endpoints:[10.244.1.5:8080 10.244.1.6:8080 10.244.1.7:8080 " +
		"10.244.2.5:8080 [fd00::5]:8080]} {Name:dns Protocol:udp Port:53 NodePort:0 Endpoints:[]}]"
	if have != want {
		t.Errorf("have %s\nwant %s", have, want)
	}
	o.Spec.PublishNotReadyAddresses = true
	if e := Service(o, slices).Ports[0].Endpoints[1]; !e.Ready {
		t.Errorf("publishNotReadyAddresses: %+v", e)
	}
	o.Spec.ClusterIP, o.Spec.ClusterIPs = "None", []string{"None"}
	if s := Service(o, slices); s != nil {
		t.Errorf("headless: %+v", s)
	}
}

// TestMark: a mark is read in the one form that it is written in.
func TestMark(t *testing.T) {
	for text, want := range map[string]int{"50000": 50000, "55000": 55000, "49999": 0, "55001": 0, "": 0, "x": 0,
		"+50000": 0, "050000": 0, " 50000": 0, "0xc350": 0, "50000.0": 0, "99999999999999999999": 0, "5\n": 0} {
		e := EgressIP(&v1.EgressIP{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{v1.AnnotationEgressIPMark: text}}})
		if e.Mark != want || (e.MarkProblem == "") != (want != 0) || strings.Contains(e.MarkProblem, "\n") {
			t.Errorf("%q is mark %d, problem %q, want %d", text, e.Mark, e.MarkProblem, want)
		}
	}
	if e := EgressIP(&v1.EgressIP{}); e.Mark != 0 || e.MarkProblem != "" {
		t.Errorf("none is mark %d, problem %q", e.Mark, e.MarkProblem)
	}
}

// TestWhenUnassigned: capitals and blanks are understood; what is not counts as drop, and is a problem.
func TestWhenUnassigned(t *testing.T) {
	for value, problem := range map[string]bool{"drop": false, "Drop": false, " DROP ": false, "dorp": true, "": true,
		"NodeIP": true, "drop\nx": true} {
		o := &v1.EgressIP{}
		o.Annotations = map[string]string{v1.AnnotationWhenUnassigned: value}
		e := EgressIP(o)
		if !e.DropWhenUnassigned || (e.UnassignedProblem != "") != problem ||
			strings.Contains(e.UnassignedProblem, "\n") {
			t.Errorf("%q: drop %t, problem %q", value, e.DropWhenUnassigned, e.UnassignedProblem)
		}
		s := EgressService(&v1.EgressService{ObjectMeta: o.ObjectMeta})
		if !s.DropWhenUnassigned || s.UnassignedProblem != e.UnassignedProblem {
			t.Errorf("%q of an EgressService: drop %t, problem %q", value, s.DropWhenUnassigned, s.UnassignedProblem)
		}
	}
	if s := EgressService(&v1.EgressService{}); s.DropWhenUnassigned || s.UnassignedProblem != "" {
		t.Errorf("an EgressService without: drop %t, problem %q", s.DropWhenUnassigned, s.UnassignedProblem)
	}
	if e := EgressIP(&v1.EgressIP{}); e.DropWhenUnassigned || e.UnassignedProblem != "" {
		t.Errorf("without: drop %t, problem %q", e.DropWhenUnassigned, e.UnassignedProblem)
	}
}
