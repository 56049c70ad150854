package kube

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/world"
)

func loadBalancer() *corev1.Service {
	local, timeout := corev1.ServiceInternalTrafficPolicyLocal, int32(90)
	proxy, vip := corev1.LoadBalancerIPModeProxy, corev1.LoadBalancerIPModeVIP
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "s", UID: "u"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, ClusterIPs: []string{"10.96.0.9"}, ExternalIPs: []string{"192.0.2.1",
				"nonsense", "127.0.0.1", "192.0.2.1", "255.255.255.255"},
			ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, InternalTrafficPolicy: &local,
			HealthCheckNodePort: 30999, Selector: map[string]string{"app": "web"},
			SessionAffinity: corev1.ServiceAffinityClientIP, LoadBalancerSourceRanges: []string{"198.51.100.0/24 "},
			SessionAffinityConfig: &corev1.SessionAffinityConfig{
				ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &timeout}},
			Ports: []corev1.ServicePort{{Name: "web", Port: 80, NodePort: 30080}, {Name: "call",
				Port: 70000}, {Name: "sig", Port: 36412, Protocol: corev1.ProtocolSCTP}},
		},
		Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{
			{IP: "203.0.113.1"}, {IP: "203.0.113.2", IPMode: &proxy}, {IP: "203.0.113.3", IPMode: &vip},
			{Hostname: "example.org"}, {IP: "2001:db8::1"},
		}}},
	}
}

func TestExternalService(t *testing.T) {
	have := Service(loadBalancer(), nil)
	problems := have.Problems
	have.Problems = nil
	want := &world.Service{
		Namespace: "d", Name: "s", UID: "u", ClusterIPs: ips("10.96.0.9"), LoadBalancerIPs: ips("203.0.113.1",
			"203.0.113.3", "2001:db8::1"),
		ExternalIPs: ips("192.0.2.1"), LoadBalancer: true, SourceRanges: mustPrefixes("198.51.100.0/24"),
		ExternalLocal: true,
		InternalLocal: true, Affinity: 90, HealthCheckPort: 30999,
		Pods: labels.SelectorFromSet(labels.Set{"app": "web"}),
		Ports: []world.ServicePort{{Name: "sig", Protocol: "sctp", Port: 36412}, {Name: "web", Protocol: "tcp",
			Port: 80, NodePort: 30080}},
	}
	if !reflect.DeepEqual(have, want) {
		t.Errorf("have %+v\nwant %+v", have, want)
	}
	for i, part := range []string{`"nonsense" is no address`, `"127.0.0.1" is no address`,
		`"255.255.255.255" is no address`, "spec.ports[1]: port 70000"} {
		if len(problems) != 4 || !strings.Contains(problems[i], part) {
			t.Errorf("problems %q, want %q in the one with index %d", problems, part, i)
		}
	}
}

func ips(list ...string) []netip.Addr {
	out, err := parseAddrs(list)
	if err != nil {
		panic(err)
	}
	return out
}

// TestServiceWithoutSelector: it selects no pod, as one that selects everything would.
func TestServiceWithoutSelector(t *testing.T) {
	o := loadBalancer()
	o.Spec.Selector = nil
	if s := Service(o, nil); s.Pods.Matches(labels.Set{"app": "web"}) {
		t.Error("it selects a pod")
	}
}

// TestServiceType: what other types leave behind in an object does not count.
func TestServiceType(t *testing.T) {
	o := loadBalancer()
	o.Spec.Type, o.Spec.SessionAffinityConfig = corev1.ServiceTypeClusterIP, nil
	s := Service(o, nil)
	if len(s.LoadBalancerIPs)+len(s.SourceRanges) > 0 || s.HealthCheckPort != 0 || s.Ports[1].NodePort != 0 ||
		s.Affinity != 3*60*60 {
		t.Errorf("have %+v", s)
	}
	o.Spec.Type = corev1.ServiceTypeExternalName
	if s := Service(o, nil); s != nil {
		t.Errorf("ExternalName: %+v", s)
	}
	for _, label := range []string{"service.kubernetes.io/service-proxy-name", "service.kubernetes.io/headless"} {
		o := loadBalancer()
		o.Labels = map[string]string{label: ""}
		if s := Service(o, nil); s != nil {
			t.Errorf("label %s: another proxy's Service is served: %+v", label, s)
		}
	}
}

// TestSourceRangeGarbage: a range that cannot be read lets nobody in; without any everybody may come.
func TestSourceRangeGarbage(t *testing.T) {
	o := loadBalancer()
	o.Spec.LoadBalancerSourceRanges = []string{"x"}
	s := Service(o, nil)
	if len(s.SourceRanges) != 1 || s.SourceRanges[0].Bits() != 32 || !strings.Contains(fmt.Sprint(s.Problems),
		"loadBalancerSourceRanges") {
		t.Errorf("have %v, %q", s.SourceRanges, s.Problems)
	}
}

// TestEndpoints: conditions, node, hints, and what two slices say of one address.
func TestEndpoints(t *testing.T) {
	yes, no, node := true, false, "n1"
	a := slice("a", "web", 8080,
		discoveryv1.Endpoint{Addresses: []string{"10.244.1.5"}, NodeName: &node,
			Conditions: discoveryv1.EndpointConditions{Ready: &no, Serving: &yes, Terminating: &yes}},
		discoveryv1.Endpoint{Addresses: []string{"10.244.1.6"}, Conditions: discoveryv1.EndpointConditions{Ready: &no}},
		discoveryv1.Endpoint{Addresses: []string{"10.244.1.7"},
			Hints: &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "east"}},
				ForNodes: []discoveryv1.ForNode{{Name: "n1"}}}})
	b := slice("b", "web", 8080, discoveryv1.Endpoint{Addresses: []string{"10.244.1.6"}},
		discoveryv1.Endpoint{Addresses: []string{"example.org"}})
	want := []world.Endpoint{
		{AddrPort: netip.MustParseAddrPort("10.244.1.5:8080"), Node: "n1", Serving: true, Terminating: true},
		{AddrPort: netip.MustParseAddrPort("10.244.1.6:8080"), Ready: true, Serving: true},
		{AddrPort: netip.MustParseAddrPort("10.244.1.7:8080"), Ready: true, Serving: true, ForNodes: []string{"n1"},
			ForZones: []string{"east"}},
	}
	o := loadBalancer()
	if have := Service(o, []*discoveryv1.EndpointSlice{a, b}).Ports[1].Endpoints; !reflect.DeepEqual(have, want) {
		t.Errorf("have %+v\nwant %+v", have, want)
	}
}
