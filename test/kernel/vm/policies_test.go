package vm

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/sandbox"
)

// service is one of both families with a node port and one endpoint.
type service struct {
	name     string
	number   int // of its cluster IPs
	nodePort int32
	local    bool // the policy
	node     sandbox.Member
	ips      []netip.Addr // the endpoint's, IPv4 first
	port     int32
}

func (s service) clusterIPs() []netip.Addr {
	return []netip.Addr{netip.MustParseAddr(fmt.Sprint("10.96.0.", s.number)),
		netip.MustParseAddr(fmt.Sprintf("fd00:10:96::%d", s.number))}
}

// dual records a Service and its EndpointSlices.
func (l *kernelLab) dual(s service) {
	l.t.Helper()
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name,
			Labels: map[string]string{discoveryv1.LabelServiceName: s.name}}
	}
	policy := corev1.ServiceExternalTrafficPolicyCluster
	if s.local {
		policy = corev1.ServiceExternalTrafficPolicyLocal
	}
	ips := []string{s.clusterIPs()[0].String(), s.clusterIPs()[1].String()}
	l.api.put(l.t, "/api/v1/namespaces/"+namespace+"/services/"+s.name, corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: meta(s.name),
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, ClusterIP: ips[0], ClusterIPs: ips,
			ExternalTrafficPolicy: policy, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol},
			Ports: []corev1.ServicePort{{Port: 80, NodePort: s.nodePort, Protocol: corev1.ProtocolTCP}}},
	})
	protocol := corev1.ProtocolTCP
	for i, kind := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		slice := fmt.Sprint(s.name, "-", i)
		l.api.put(l.t, "/apis/discovery.k8s.io/v1/namespaces/"+namespace+"/endpointslices/"+slice,
			discoveryv1.EndpointSlice{
				TypeMeta:   metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
				ObjectMeta: meta(slice), AddressType: kind,
				Endpoints: []discoveryv1.Endpoint{{Addresses: []string{s.ips[i].String()}, NodeName: &s.node.Name}},
				Ports:     []discoveryv1.EndpointPort{{Port: &s.port, Protocol: &protocol}},
			})
	}
}

// policies are the rows of seed external-traffic-policy.md: from outside, from nodes and from pods to a pod and to a
// host, with both policies and both families. The endpoint is on the first node.
func (l *kernelLab) policies() {
	const hostServer = 7071
	node := l.nodes[0]
	serveInPod(l.far)
	for _, ip := range node.IPs {
		serveIn(l.t, node.Name, netip.AddrPortFrom(ip, hostServer))
	}
	for i, s := range []service{
		{name: "pod-cluster", ips: l.far.ips(), port: sandbox.ClientIPPort},
		{name: "pod-local", ips: l.far.ips(), port: sandbox.ClientIPPort, local: true},
		{name: "host-cluster", ips: node.IPs, port: hostServer},
		{name: "host-local", ips: node.IPs, port: hostServer, local: true},
	} {
		s.node, s.number, s.nodePort = node, 50+i, int32(30510+i)
		l.dual(s)
		l.fromOutside(s)
		l.t.Log(s.name + ": clients outside")
		l.fromInside(s)
		l.t.Log(s.name + ": nodes and pods")
	}
}

// fromOutside: with policy Local the node with the endpoint serves, and the client keeps its address; the other one
// refuses. With Cluster both serve.
func (l *kernelLab) fromOutside(s service) {
	client := l.ExternalHosts()[0]
	ask := inside(func(do func() error) error { return sandbox.InNetns(client.Name, do) })
	for _, node := range l.nodes {
		for _, ip := range node.IPs {
			at := netip.AddrPortFrom(ip, uint16(s.nodePort))
			if s.local && node.Name != s.node.Name {
				l.refused(s.name+" from outside", at, ask)
				continue
			}
			seen := l.answered(s.name+" from outside", at, ask)
			if s.local && !slices.Contains(client.IPs, seen) {
				l.t.Errorf("%s at %s sees the client as %s", s.name, at, seen)
			}
		}
	}
}

// fromInside: nodes and pods reach the endpoint by the cluster IP and by their own node's port, whatever the policy is.
// At another node's port they come from outside.
func (l *kernelLab) fromInside(s service) {
	for i, ip := range s.clusterIPs() {
		l.insideTo(s, netip.AddrPortFrom(ip, 80), l.nodes[0].Name)
		for _, node := range l.nodes {
			l.insideTo(s, netip.AddrPortFrom(node.IPs[i], uint16(s.nodePort)), node.Name)
		}
	}
}

// insideTo has nodes and pods ask at an address of a node, or at one that is on all, as the endpoint's node.
func (l *kernelLab) insideTo(s service, at netip.AddrPort, node string) {
	check := func(who, own string, ask ask) {
		if s.local && node != s.node.Name && node != own {
			l.refused(s.name+" from "+who, at, ask)
		} else {
			l.answered(s.name+" from "+who, at, ask)
		}
	}
	for _, p := range []pod{l.near, l.plain} {
		check("pod "+p.name, p.node.Name, inside(func(do func() error) error { return l.inPod(p, do) }))
	}
	for _, n := range l.nodes {
		check("node "+n.Name, n.Name, inside(func(do func() error) error { return sandbox.InNetns(n.Name, do) }))
	}
}

// ask is the address of which a server says that the connection comes from it.
type ask func(server netip.AddrPort) (seenAs netip.Addr, err error)

// inside asks from a network namespace, without a program of its own: an emulated machine takes seconds to start one.
func inside(in func(do func() error) error) ask {
	return func(server netip.AddrPort) (seenAs netip.Addr, err error) {
		var conn net.Conn
		if err := in(func() (err error) {
			conn, err = net.DialTimeout("tcp", server.String(), 10*time.Second)
			return err
		}); err != nil {
			return netip.Addr{}, err
		}
		defer conn.Close()
		return clientOf(conn)
	}
}

// clientOf asks over a connection.
func clientOf(conn net.Conn) (netip.Addr, error) {
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return netip.Addr{}, err
	}
	if _, err := fmt.Fprint(conn, "GET /clientip HTTP/1.0\r\n\r\n"); err != nil {
		return netip.Addr{}, err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return netip.Addr{}, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return netip.Addr{}, err
	}
	client, err := netip.ParseAddrPort(strings.TrimSpace(string(text)))
	return client.Addr(), err
}

func (l *kernelLab) answered(what string, at netip.AddrPort, ask ask) (seenAs netip.Addr) {
	l.t.Helper()
	l.eventually(fmt.Sprintf("an answer of %s at %s", what, at), func(context.Context) (err error) {
		seenAs, err = ask(at)
		return err
	})
	return seenAs
}

func (l *kernelLab) refused(what string, at netip.AddrPort, ask ask) {
	l.t.Helper()
	l.eventually(fmt.Sprintf("refusal of %s at %s", what, at), func(context.Context) error {
		if seen, err := ask(at); err == nil {
			return fmt.Errorf("answered as %s", seen)
		}
		return nil
	})
}
