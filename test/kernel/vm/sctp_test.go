package vm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Ports of the Services of SCTP, and of their server in a pod.
const (
	sctpPort, sctpServer = 36412, 7000
	sctpLocal            = 30412 // node port, policy Local
	sctpCluster          = 30413 // node port, policy Cluster
	sctpClient           = 30414 // of a host outside, for all of its associations
)

// sctp: Services of SCTP serve pods and hosts outside. With policy Local the pod sees the client, whatever egress IP it
// has itself.
func (l *kernelLab) sctp() {
	for _, p := range []pod{l.far, l.near} {
		l.serveSCTP(p)
	}
	local, cluster := netip.MustParseAddr("10.96.0.31"), netip.MustParseAddr("10.96.0.32")
	l.sctpService("sctp-local", local, sctpLocal, corev1.ServiceExternalTrafficPolicyLocal, l.far)
	l.sctpService("sctp-cluster", cluster, sctpCluster, corev1.ServiceExternalTrafficPolicyCluster, l.far)
	host := l.ExternalHosts()[0]
	outside := func(do func() error) error { return inNetns(host.Name, do) }
	inPlain := func(do func() error) error { return l.inPod(l.plain, do) }
	l.answersSCTP("pod to cluster IP", client{inPlain, netip.AddrPortFrom(l.plain.ips()[0], 0)},
		netip.AddrPortFrom(local, sctpPort), l.plain.ips()[0])
	l.answersSCTP("host outside, policy Local", client{outside, netip.AddrPortFrom(host.IPs[0], 0)},
		netip.AddrPortFrom(l.nodes[0].IPs[0], sctpLocal), host.IPs[0])
	for _, n := range l.nodes {
		l.answersSCTP("host outside, policy Cluster, by "+n.Name,
			client{outside, netip.AddrPortFrom(host.IPs[0], 0)}, netip.AddrPortFrom(n.IPs[0], sctpCluster),
			netip.Addr{})
	}
	l.followsSCTP(client{outside, netip.AddrPortFrom(host.IPs[0], sctpClient)}, cluster)
}

// followsSCTP: a client that begins each association from the same port gets the endpoint that there is, not the one
// that its last one was with. The former endpoint still answers who comes to it.
func (l *kernelLab) followsSCTP(c client, ip netip.Addr) {
	for _, endpoint := range []pod{l.far, l.near, l.far} {
		l.sctpService("sctp-cluster", ip, sctpCluster, corev1.ServiceExternalTrafficPolicyCluster, endpoint)
		for _, n := range l.nodes {
			at := netip.AddrPortFrom(n.IPs[0], sctpCluster)
			l.eventually("SCTP from one port, to "+endpoint.name+" by "+n.Name, func(context.Context) error {
				return c.in(func() error {
					_, server, err := askSCTP(c.from, at)
					if err == nil && server != endpoint.name {
						err = fmt.Errorf("it is with pod %s", server)
					}
					return err
				})
			})
		}
	}
}

// sctpService records one with a pod as endpoint.
func (l *kernelLab) sctpService(name string, ip netip.Addr, nodePort int32, policy corev1.ServiceExternalTrafficPolicy,
	endpoint pod) {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name,
		Labels: map[string]string{discoveryv1.LabelServiceName: name}}
	l.api.put(l.t, "/api/v1/namespaces/"+namespace+"/services/"+name, corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: meta,
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, ClusterIP: ip.String(),
			ClusterIPs: []string{ip.String()}, ExternalTrafficPolicy: policy,
			Ports: []corev1.ServicePort{{Port: sctpPort, NodePort: nodePort, Protocol: corev1.ProtocolSCTP}}},
	})
	port, protocol := int32(sctpServer), corev1.ProtocolSCTP
	l.api.put(l.t, "/apis/discovery.k8s.io/v1/namespaces/"+namespace+"/endpointslices/"+name, discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}, ObjectMeta: meta,
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{endpoint.ips()[0].String()},
			NodeName: &endpoint.node.Name}},
		Ports: []discoveryv1.EndpointPort{{Port: &port, Protocol: &protocol}},
	})
}

// client is who connects: in runs something where it is, from is its address and port there; port 0 is any.
type client struct {
	in   func(func() error) error
	from netip.AddrPort
}

// answersSCTP connects until the server says whom it sees. The zero address stands for anybody.
func (l *kernelLab) answersSCTP(who string, c client, to netip.AddrPort, want netip.Addr) {
	l.t.Helper()
	var have string
	l.eventually("SCTP, "+who, func(context.Context) error {
		return c.in(func() (err error) { have, _, err = askSCTP(c.from, to); return err })
	})
	if want.IsValid() && have != want.String() {
		l.t.Errorf("SCTP, %s: the pod sees %s, want %s", who, have, want)
		return
	}
	l.t.Logf("SCTP, %s: the pod sees %s", who, have)
}

// serveSCTP tells everybody who connects to a pod the address that the connection has there, and the pod's name.
func (l *kernelLab) serveSCTP(p pod) {
	l.t.Helper()
	listener := -1
	if err := l.inPod(p, func() (err error) { listener, err = sctpSocket(); return err }); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { unix.Close(listener) })
	err := errors.Join(unix.Bind(listener, &unix.SockaddrInet4{Port: sctpServer}), unix.Listen(listener, 8))
	if err != nil {
		l.t.Fatal(err)
	}
	go func() {
		for {
			fd, from, err := unix.Accept(listener)
			if errors.Is(err, unix.EBADF) || errors.Is(err, unix.EINVAL) {
				return
			}
			if client, ok := from.(*unix.SockaddrInet4); ok && err == nil {
				_, _ = unix.Write(fd, []byte(netip.AddrFrom4(client.Addr).String()+" "+p.name))
				unix.Close(fd)
			}
		}
	}()
}

func sctpSocket() (int, error) { return unix.Socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP) }

// askSCTP binds to one address. A socket that is not bound offers the peer all of its host's (RFC 9260 5.1.2), and
// nothing that translates knows the others: the host outside has more of them once it is on other networks, too.
func askSCTP(from, to netip.AddrPort) (seen, server string, err error) {
	fd, err := sctpSocket()
	if err != nil {
		return "", "", err
	}
	defer unix.Close(fd)
	limit := unix.Timeval{Sec: 10}
	if err := errors.Join(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit)); err != nil {
		return "", "", err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: from.Addr().As4(), Port: int(from.Port())}); err != nil {
		return "", "", err
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}); err != nil {
		return "", "", fmt.Errorf("connect to %s: %w", to, err)
	}
	answer := make([]byte, 64)
	n, err := unix.Read(fd, answer)
	if err == nil && n == 0 {
		err = errors.New("no answer")
	}
	seen, server, _ = strings.Cut(string(answer[:max(n, 0)]), " ")
	return seen, server, err
}

// inPod runs do inside a pod's network namespace, whose name is known on its node only.
func (l *kernelLab) inPod(p pod, do func() error) error {
	enter, err := l.Command(p.node.Name, "true")
	if err != nil {
		return err
	}
	ns, err := netns.GetFromPath("/proc/" + enter[2] + "/root/run/netns/" + p.name) // nsenter --target PID
	if err != nil {
		return err
	}
	defer ns.Close()
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends
		if err := netns.Set(ns); err != nil {
			result <- err
			return
		}
		result <- do()
	}()
	return <-result
}
