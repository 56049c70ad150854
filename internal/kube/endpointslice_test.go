package kube

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestEndpointsPod: an endpoint is the pod that its slice says, if all slices say so.
func TestEndpointsPod(t *testing.T) {
	slice := func(name string, to *corev1.ObjectReference) *discoveryv1.EndpointSlice {
		port, protocol := int32(8080), corev1.ProtocolTCP
		o := loadBalancer()
		return &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: name,
				Labels: map[string]string{discoveryv1.LabelServiceName: o.Name}},
			Ports:     []discoveryv1.EndpointPort{{Name: &o.Spec.Ports[0].Name, Protocol: &protocol, Port: &port}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.244.1.10"}, TargetRef: to}},
		}
	}
	of := func(kind, namespace, name string) *corev1.ObjectReference {
		return &corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: name}
	}
	own := loadBalancer().Namespace
	for _, c := range []struct {
		refs []*corev1.ObjectReference
		want string
	}{
		{[]*corev1.ObjectReference{nil}, ""},
		{[]*corev1.ObjectReference{of("Pod", own, "web-0")}, "web-0"},
		{[]*corev1.ObjectReference{of("Pod", "", "web-0")}, "web-0"},
		{[]*corev1.ObjectReference{of("Pod", "other", "web-0")}, "other/web-0"},
		{[]*corev1.ObjectReference{of("Node", "", "n1")}, ""},
		{[]*corev1.ObjectReference{of("Pod", own, "web-0"), of("Pod", own, "web-0")}, "web-0"},
		{[]*corev1.ObjectReference{of("Pod", own, "web-0"), of("Pod", own, "web-1")}, ""},
		{[]*corev1.ObjectReference{of("Pod", own, "web-0"), nil, of("Pod", own, "web-0")}, ""},
	} {
		var parts []*discoveryv1.EndpointSlice
		for i, to := range c.refs {
			parts = append(parts, slice(fmt.Sprint("part-", i), to))
		}
		s := Service(loadBalancer(), parts)
		if all := s.Ports[1].Endpoints; len(all) != 1 || all[0].Pod != c.want {
			t.Errorf("%v: endpoints %+v, want pod %q", c.refs, all, c.want)
		}
	}
}

// TestFurtherAddresses: an endpoint is at its first address alone, as discovery/v1 says.
func TestFurtherAddresses(t *testing.T) {
	p := slicePartOf(&discoveryv1.EndpointSlice{Endpoints: []discoveryv1.Endpoint{
		{Addresses: []string{"10.244.1.7", "10.244.1.8"}}, {Addresses: []string{"host.example", "10.244.1.9"}}}})
	if len(p.endpoints) != 1 || p.endpoints[0].Addr().String() != "10.244.1.7" {
		t.Errorf("have %v", p.endpoints)
	}
}

// TestAPIServersSlice: nobody else's slice adds to the API servers' addresses.
func TestAPIServersSlice(t *testing.T) {
	slice := func(namespace, name string) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
			Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}}}
	}
	for want, o := range map[string]*discoveryv1.EndpointSlice{"default/kubernetes": slice("default", "kubernetes"),
		"default/": slice("default", "kubernetes-x7k2"), "shop/kubernetes": slice("shop", "mine")} {
		if have := slicePartOf(o).service; have != want {
			t.Errorf("slice %s/%s is of Service %q, want %q", o.Namespace, o.Name, have, want)
		}
	}
}
