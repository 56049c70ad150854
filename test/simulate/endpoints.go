package simulate

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/egret-net/egret/internal/world"
)

// setEndpoints has a Service's EndpointSlices, one a family, name a pod, or be gone. Its selector makes none here.
func (s *Sim) setEndpoints(service string, pod []string) {
	for f, of := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		key := namespace + "/" + service + "-" + string(of)
		if len(pod) == 0 {
			s.api.delete("endpointslices", key)
			continue
		}
		if p := s.pods[podKey(pod[0])]; p != nil && p.at != nil {
			address := world.Family(f).OfAddrs(p.at.IPs)[0].String()
			s.api.put("endpointslices", s.sliceOf(key, service, of, p.name(), address))
		}
	}
}

func (s *Sim) sliceOf(
	key, service string, of discoveryv1.AddressType, pod, address string,
) *discoveryv1.EndpointSlice {
	o := get[*discoveryv1.EndpointSlice](s.api, "endpointslices", key)
	if o == nil {
		o = &discoveryv1.EndpointSlice{AddressType: of}
		o.Namespace, o.Name = namespace, service+"-"+string(of)
		o.Labels = map[string]string{discoveryv1.LabelServiceName: service}
		port, tcp := int32(80), corev1.ProtocolTCP
		o.Ports = []discoveryv1.EndpointPort{{Port: &port, Protocol: &tcp}}
	}
	o.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{address},
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: pod}}}
	return o
}
