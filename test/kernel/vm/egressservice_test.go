package vm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
)

// A Service whose pods leave by the VRF of the second node. Its ingress IPs are of no network here, and the client is a
// host of the VRF's side that only the VRF's table leads to: what leaves by the main one is lost.
var (
	behindService = map[string]string{"app": "behind"}
	ingressIPs    = []netip.Addr{netip.MustParseAddr("203.0.113.50"), netip.MustParseAddr("2001:db8:113::50")}
	serviceIPs    = []netip.Addr{netip.MustParseAddr("10.96.0.40"), netip.MustParseAddr("fd00:10:96::40")}
	vrfClient     = []netip.Addr{netip.MustParseAddr("198.51.100.2"), netip.MustParseAddr("2001:db8:51::2")}
)

const (
	ingressPort = 80
	insidePort  = 7071 // of a server on each node
)

// egressService: pods of both nodes leave by the VRF with the Service's addresses, and answer there what comes in
// by it; what stays in the cluster is as without. Then by the VRF of each pod's own node, with the address of its
// link: a node without the VRF sends nothing.
func (l *kernelLab) egressService() {
	node, host := l.nodes[1], l.ExternalHosts()[0]
	defer l.look(node)
	if !strings.Contains(l.in(node.Name, "ip", "-br", "link"), vrfName+" ") {
		l.enslave(node, host)
	}
	for i, ip := range vrfClient {
		l.in(host.Name, "ip", "addr", "add", single(ip), "dev", "lo")
		l.in(host.Name, "ip", "route", "add", single(ingressIPs[i]), "via", node.Secondary[0][i].String(), "src",
			ip.String())
	}
	far, near := l.pod("behind-far", l.nodes[0], behindService), l.pod("behind-near", node, behindService)
	serveInPod(far)
	serveInPod(near)
	for _, n := range l.nodes {
		for _, ip := range n.IPs {
			serveIn(l.t, n.Name, netip.AddrPortFrom(ip, insidePort))
		}
	}
	l.loadBalancer("behind", far, near)
	l.egressServiceIs("behind", v1.EgressServiceSpec{SourceIPBy: v1.SourceIPLoadBalancer, Network: vrfName},
		v1.EgressServiceStatus{Host: node.Name, SourceIPs: texts(ingressIPs),
			InForce: []v1.IPFamily{v1.IPv4, v1.IPv6}})
	far.isSeenAs(ingressIPs, vrfClient, sandbox.ClientIPPort)
	near.isSeenAs(ingressIPs, vrfClient, sandbox.ClientIPPort)
	l.comesIn(host)
	l.staysInside(far, near)
	l.egressServiceIs("behind", v1.EgressServiceSpec{SourceIPBy: v1.SourceIPNetwork, Network: vrfName},
		v1.EgressServiceStatus{Host: v1.EgressServiceHostAll})
	l.becomes(near, node.Secondary[0])
	l.comesIn(host)
	l.leavesNowhere(far, l.outside[0])
	l.staysInside(far, near)
}

func texts(ips []netip.Addr) (out []string) {
	for _, ip := range ips {
		out = append(out, ip.String())
	}
	return out
}

// loadBalancer records a Service of pods in both families.
func (l *kernelLab) loadBalancer(name string, pods ...pod) {
	s := corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)}}
	s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ClusterIP: serviceIPs[0].String(),
		ClusterIPs: texts(serviceIPs), Selector: behindService,
		Ports: []corev1.ServicePort{{Port: ingressPort, Protocol: corev1.ProtocolTCP}}}
	for _, ip := range ingressIPs {
		s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress,
			corev1.LoadBalancerIngress{IP: ip.String()})
	}
	l.api.put(l.t, "/api/v1/namespaces/"+namespace+"/services/"+name, s)
	port, protocol := int32(sandbox.ClientIPPort), corev1.ProtocolTCP
	for i, kind := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		slice := discoveryv1.EndpointSlice{
			TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint(name, "-", i),
				Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			AddressType: kind, Ports: []discoveryv1.EndpointPort{{Port: &port, Protocol: &protocol}},
		}
		for _, p := range pods {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{NodeName: &p.node.Name,
				Addresses: []string{p.ips()[i].String()}})
		}
		l.api.put(l.t, "/apis/discovery.k8s.io/v1/namespaces/"+namespace+"/endpointslices/"+slice.Name, slice)
	}
}

// egressServiceIs records one as its author and egret-controller would.
func (l *kernelLab) egressServiceIs(name string, spec v1.EgressServiceSpec, status v1.EgressServiceStatus) {
	s := v1.EgressService{TypeMeta: metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "EgressService"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-es-" + name)},
		Spec:       spec, Status: status}
	l.api.put(l.t, "/apis/"+v1.GroupVersion.String()+"/namespaces/"+namespace+"/egressservices/"+name, s)
}

// comesIn: the client is answered at each ingress IP, by way of the VRF's link.
func (l *kernelLab) comesIn(host sandbox.Member) {
	l.t.Helper()
	for _, ip := range ingressIPs {
		at := netip.AddrPortFrom(ip, ingressPort)
		for range 4 { // either pod answers
			l.eventually("connection of the VRF's side to "+at.String(), func(ctx context.Context) error {
				_, err := l.ask(ctx, host.Name, at)
				return err
			})
		}
	}
}

// staysInside: the pods reach each other with their own addresses, and nodes with their node's.
func (l *kernelLab) staysInside(far, near pod) {
	l.t.Helper()
	near.isSeenAs(near.ips(), far.ips(), sandbox.ClientIPPort)
	far.isSeenAs(far.ips(), near.ips(), sandbox.ClientIPPort)
	near.isSeenAs(slices.Concat(near.ips(), far.ips(), hairpins), serviceIPs, ingressPort)
	near.isSeenAs(near.node.IPs, far.node.IPs, insidePort)
	far.isSeenAs(far.node.IPs, near.node.IPs, insidePort)
}

// hairpins are what a pod sees that a Service leads back to itself.
var hairpins = []netip.Addr{netip.MustParseAddr("169.254.169.5"), netip.MustParseAddr("fd69::5")}

// becomes waits until the client sees a pod so.
func (l *kernelLab) becomes(p pod, want []netip.Addr) {
	l.t.Helper()
	for _, ip := range vrfClient {
		l.isSoonSeenAs(p, want, ip)
	}
}

// leavesNowhere waits until a pod reaches an address outside no more.
func (l *kernelLab) leavesNowhere(p pod, to netip.Addr) {
	l.t.Helper()
	at := netip.AddrPortFrom(to, sandbox.ClientIPPort)
	l.eventually("no way of pod "+p.name+" to "+at.String(), func(ctx context.Context) error {
		if have, err := l.ask(ctx, p.node.Name, at, "ip", "netns", "exec", p.name); err == nil {
			return errors.New("still answered: seen as " + have.String())
		}
		return nil
	})
}
