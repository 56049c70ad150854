package controller_test

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
)

// aBalancer is Service shop/web with an ingress IP and one pod.
func aBalancer() (*corev1.Service, *discoveryv1.EndpointSlice) {
	port, http := int32(8080), "http"
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web"}}
	s.Spec.Type, s.Spec.ClusterIP = corev1.ServiceTypeLoadBalancer, "10.96.0.9"
	s.Spec.Ports = []corev1.ServicePort{{Name: http, Port: 80}}
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "172.18.0.100"}}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1",
		Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		Ports:     []discoveryv1.EndpointPort{{Name: &http, Port: &port}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.244.1.5"}}}}
	return s, slice
}

// TestEgressServiceHost: the label is written beside those that others write, goes where the host goes, and goes with
// the EgressService; and the next leader takes away what was left meanwhile.
func TestEgressServiceHost(t *testing.T) {
	const label = v1.LabelEgressService + "shop-web"
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(time.Millisecond)
		for i, name := range []string{"n1", "n2"} {
			n := aNode(name, i+2)
			n.Labels["color"] = "green"
			n.Labels[v1.LabelEgressService+"left-over"] = ""
			a.putNode(n)
		}
		service, slice := aBalancer()
		a.putBalanced(service, slice)
		a.putEgressService(&v1.EgressService{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web",
			UID: "uid-es"}})
		start(t, a)
		eventually(t, "host", "n1 NoEndpoints", func() string { return a.host("shop/web") })
		eventually(t, "its label", "n1", func() string { return a.labelled(label, "n1", "n2") })
		eventually(t, "label left over", "", func() string {
			return a.labelled(v1.LabelEgressService+"left-over", "n1", "n2")
		})
		n := aNode("n1", 2)
		n.Labels = map[string]string{"color": "red", label: ""}
		n.Status.Conditions[0].Status = corev1.ConditionFalse
		a.putNode(n)
		eventually(t, "host", "n2 NoEndpoints", func() string { return a.host("shop/web") })
		eventually(t, "its label", "n2", func() string { return a.labelled(label, "n1", "n2") })
		eventually(t, "labels of others", "n1n2", func() string { return a.labelled("color", "n1", "n2") })
		a.deleteEgressService("shop/web")
		eventually(t, "its label", "", func() string { return a.labelled(label, "n1", "n2") })
	})
}
