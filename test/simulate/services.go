package simulate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/compile/compiletest"
)

// setService creates or changes a Service for the pods of a group. A load balancer has given it ingress addresses: one
// a family, by a Service's name, a letter, and with 1 others.
func (s *Sim) setService(name, group string, which int, addressesOf string) {
	o := get[*corev1.Service](s.api, "services", namespace+"/"+name)
	if o == nil {
		o = &corev1.Service{}
		o.Namespace, o.Name = namespace, name
		o.Spec.Type = corev1.ServiceTypeLoadBalancer
		o.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
		o.Spec.ClusterIPs = []string{fmt.Sprintf("10.96.1.%d", name[0]), fmt.Sprintf("fd00:10:96::1:%d", name[0])}
		o.Spec.ClusterIP = o.Spec.ClusterIPs[0]
		o.Spec.Ports = []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: 80}}
	}
	o.Spec.Selector = map[string]string{"group": group}
	o.Status.LoadBalancer.Ingress = nil
	for _, ip := range compiletest.EgressAddr(20 + 2*int(addressesOf[0]-'a') + which) {
		o.Status.LoadBalancer.Ingress = append(o.Status.LoadBalancer.Ingress,
			corev1.LoadBalancerIngress{IP: ip.String()})
	}
	s.api.put("services", o)
}

// setEgressService creates the EgressService of a Service.
func (s *Sim) setEgressService(name string) {
	if s.api.objects["egressservices"][namespace+"/"+name] == nil {
		o := &v1.EgressService{}
		o.Namespace, o.Name = namespace, name
		s.api.put("egressservices", o)
	}
}

// removeIngress takes a Service's ingress addresses away.
func (s *Sim) removeIngress(name string) {
	if o := get[*corev1.Service](s.api, "services", namespace+"/"+name); o != nil {
		o.Status.LoadBalancer.Ingress = nil
		s.api.put("services", o)
	}
}

// setType makes a Service one of another type.
func (s *Sim) setType(name, to string) {
	if o := get[*corev1.Service](s.api, "services", namespace+"/"+name); o != nil {
		o.Spec.Type = corev1.ServiceType(to)
		s.api.put("services", o)
	}
}

// choose has an EgressService's host be one machine, or any node.
func (s *Sim) choose(name string, machine []string) {
	if o := get[*v1.EgressService](s.api, "egressservices", namespace+"/"+name); o != nil {
		o.Spec.NodeSelector = metav1.LabelSelector{}
		if len(machine) > 0 {
			o.Spec.NodeSelector.MatchLabels = map[string]string{"machine": machine[0]}
		}
		s.api.put("egressservices", o)
	}
}
