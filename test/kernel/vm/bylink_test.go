package vm

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/sandbox"
)

const localPort = 30506

// byLink: a host outside that comes to a node port by another link than the primary one is seen as it is, with policy
// Local, by a pod whose own connections leave with an egress IP.
func (l *kernelLab) byLink() {
	serveInPod(l.far)
	l.localService("by-link", 40)
	client := l.ExternalHosts()[0]
	for _, node := range l.far.node.Secondary[0] {
		at := netip.AddrPortFrom(node, localPort)
		var seen netip.Addr
		l.eventually(fmt.Sprintf("an answer to %s by %s", client.Name, at), func(ctx context.Context) (err error) {
			seen, err = l.ask(ctx, client.Name, at)
			return err
		})
		if !slices.Contains(client.Secondary[0], seen) {
			l.t.Errorf("the pod sees %s by %s, want one of %s", seen, at, client.Secondary[0])
		}
	}
}

// localService records a Service with node port localPort and policy Local whose endpoint is the pod that is not on the
// egress IP's node.
func (l *kernelLab) localService(name string, number int) {
	ips := []string{fmt.Sprint("10.96.0.", number), fmt.Sprintf("fd00:10:96::%d", number)}
	service := name
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name,
			Labels: map[string]string{discoveryv1.LabelServiceName: service}}
	}
	l.api.put(l.t, "/api/v1/namespaces/"+namespace+"/services/"+name, corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: meta(name),
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, ClusterIP: ips[0], ClusterIPs: ips,
			ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
			IPFamilies:            []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol},
			Ports:                 []corev1.ServicePort{{Port: 80, NodePort: localPort, Protocol: corev1.ProtocolTCP}}},
	})
	port, protocol := int32(sandbox.ClientIPPort), corev1.ProtocolTCP
	types := []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6}
	for i, ip := range l.far.ips() {
		slice := fmt.Sprint(name, "-", i)
		l.api.put(l.t, "/apis/discovery.k8s.io/v1/namespaces/"+namespace+"/endpointslices/"+slice,
			discoveryv1.EndpointSlice{
				TypeMeta:   metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
				ObjectMeta: meta(slice), AddressType: types[i],
				Endpoints: []discoveryv1.Endpoint{{Addresses: []string{ip.String()}, NodeName: &l.far.node.Name}},
				Ports:     []discoveryv1.EndpointPort{{Port: &port, Protocol: &protocol}},
			})
	}
}
