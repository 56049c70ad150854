package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/sandbox"
)

// programmed bounds how long a new Service takes to every node, on a busy machine.
const programmed = 60 * time.Second

// balanced is a Service with hand-made endpoints: exactly those that a test asks for, from the first moment.
type balanced struct {
	n        *namespace
	name     string
	cluster  endpoint // its cluster IPs
	balancer endpoint // its load balancer's
	external endpoint // its external IPs
	nodePort int
}

// backend is a pod's name, or a node's for what listens on its host; hostServers must have started it.
type backend struct {
	name, node string
	ips        []netip.Addr
}

// backends finds them by name.
func (n *namespace) backends(names ...string) []backend {
	var out []backend
	for _, name := range names {
		b := backend{name, n.at[name], n.ips[name]}
		for _, node := range n.c.nodes {
			if node.Name == name {
				b = backend{name, name, node.IPs}
			}
		}
		out = append(out, b)
	}
	return out
}

// hostServers answer on the nodes as the pods' test servers do: /clientip and /hostname.
func (c *cluster) hostServers(t *testing.T) {
	t.Helper()
	for _, n := range c.nodes {
		mux := http.NewServeMux()
		mux.Handle("/clientip", clientIP)
		mux.HandleFunc("/hostname", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, n.Name) })
		serveIn(t, n.Name, podPort, mux)
	}
}

// balances makes a Service of type LoadBalancer; number is that of its load balancer's addresses, and the next one that
// of its external IPs.
func (n *namespace) balances(name string, number int, change func(*corev1.ServiceSpec), to ...string) balanced {
	n.t.Helper()
	policy := corev1.IPFamilyPolicyPreferDualStack
	o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, IPFamilyPolicy: &policy, ExternalIPs: texts(n.c.beyond(number + 1)),
		Ports: []corev1.ServicePort{
			{Name: "tcp", Port: 80, TargetPort: intOrString(podPort)}, {Name: "udp", Port: 80,
				TargetPort: intOrString(udpPort), Protocol: corev1.ProtocolUDP},
		},
	}}
	if change != nil {
		change(&o.Spec)
	}
	o, err := n.c.api.CoreV1().Services(n.name).Create(n.t.Context(), o, metav1.CreateOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	b := balanced{
		n: n, name: name, cluster: endpoint{"Service " + name, parseAll(o.Spec.ClusterIPs), 80},
		balancer: endpoint{"load balancer of " + name, n.c.beyond(number), 80}, external: endpoint{"external IP of " +
			name, n.c.beyond(number + 1), 80},
		nodePort: int(o.Spec.Ports[0].NodePort),
	}
	n.ingress(name, n.c.beyond(number))
	b.goesTo(to...)
	return b
}

// ingress gives a Service the addresses of a load balancer, as a cloud does: the controller may have written a
// condition meanwhile.
func (n *namespace) ingress(service string, ips []netip.Addr) {
	n.t.Helper()
	var status corev1.ServiceStatus
	for _, ip := range ips {
		status.LoadBalancer.Ingress = append(status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip.String()})
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		n.t.Fatal(err)
	}
	if _, err := n.c.api.CoreV1().Services(n.name).Patch(n.t.Context(), service, mergePatch, patch,
		metav1.PatchOptions{}, "status"); err != nil {
		n.t.Fatal(err)
	}
}

// udpPort is where the pods' test servers answer datagrams.
const udpPort = 8081

// goesTo makes its EndpointSlices, or replaces what is in them.
func (b balanced) goesTo(names ...string) {
	b.n.t.Helper()
	for _, v4 := range []bool{true, false} {
		s := b.slice(v4, b.n.backends(names...))
		if len(numberedOf(b.n.c.nodes[0].IPs, v4)) == 0 {
			continue
		}
		_, err := b.n.c.api.DiscoveryV1().EndpointSlices(b.n.name).Update(b.n.t.Context(), s, metav1.UpdateOptions{})
		if err != nil {
			_, err = b.n.c.api.DiscoveryV1().EndpointSlices(b.n.name).Create(b.n.t.Context(), s, metav1.CreateOptions{})
		}
		if err != nil {
			b.n.t.Fatal(err)
		}
	}
}

func numberedOf(ips []netip.Addr, v4 bool) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(ips), func(a netip.Addr) bool { return a.Is4() != v4 })
}

func (b balanced) slice(v4 bool, to []backend) *discoveryv1.EndpointSlice {
	kind := map[bool]discoveryv1.AddressType{true: discoveryv1.AddressTypeIPv4, false: discoveryv1.AddressTypeIPv6}[v4]
	tcp, udp := corev1.ProtocolTCP, corev1.ProtocolUDP
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: b.name + "-" + strings.ToLower(string(kind)),
			Labels: map[string]string{discoveryv1.LabelServiceName: b.name}},
		AddressType: kind,
		Ports: []discoveryv1.EndpointPort{
			{Name: ptr("tcp"), Protocol: &tcp, Port: ptr(int32(podPort))}, {Name: ptr("udp"), Protocol: &udp,
				Port: ptr(int32(udpPort))},
		},
	}
	for _, e := range to {
		one := discoveryv1.Endpoint{Addresses: texts(numberedOf(e.ips, v4)), NodeName: &e.node}
		if e.name != e.node {
			one.TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: b.n.name, Name: e.name}
		}
		s.Endpoints = append(s.Endpoints, one)
	}
	return s
}

func ptr[T any](v T) *T { return &v }

// on is its node port on one node.
func (b balanced) on(node sandbox.Member) endpoint {
	return endpoint{fmt.Sprintf("node port of %s on %s", b.name, node.Name), node.IPs, b.nodePort}
}

// beyond are addresses that no network here has; hosts outside are told the way by routed.
func (c *cluster) beyond(number int) []netip.Addr {
	var out []netip.Addr
	for _, ip := range c.nodes[0].IPs {
		if ip.Is4() {
			out = append(out, netip.AddrFrom4([4]byte{192, 0, 2, byte(number)}))
		} else {
			out = append(out, netip.MustParseAddr(fmt.Sprintf("2001:db8::%d", number)))
		}
	}
	return out
}

// routed makes a host outside send to an endpoint's addresses by a node, until the test ends.
func (c *cluster) routed(t *testing.T, host, via sandbox.Member, to endpoint) {
	t.Helper()
	for _, ip := range to.ips {
		gateway := numberedOf(via.IPs, ip.Is4())[0]
		c.on(t, host.Name, "ip", "route", "replace", netip.PrefixFrom(ip, ip.BitLen()).String(), "via",
			gateway.String())
		t.Cleanup(func() {
			_, _ = c.feed(context.Background(), host.Name, nil, "ip", "route", "del", netip.PrefixFrom(ip,
				ip.BitLen()).String())
		})
	}
}

// answers are who answers as many connections to each address.
func (f fromTo) answers(connections int) ([]string, error) {
	ctx, cancel := context.WithTimeout(f.t.Context(), lookTimeout)
	defer cancel()
	var urls []string
	for _, ip := range f.to.ips {
		urls = append(urls, slices.Repeat([]string{url(ip, f.to.port, "/hostname")}, connections)...)
	}
	answers, err := f.from.from.get(ctx, urls)
	if err != nil {
		return nil, fmt.Errorf("%s to %s: %w", f.from.from.name, f.to.name, err)
	}
	return answers, nil
}

// answeredBy says that exactly these answer, each after a while: how long depends on chance.
func (f fromTo) answeredBy(names ...string) {
	f.t.Helper()
	seen := map[string]bool{}
	within(f.t, programmed, func() error {
		answers, err := f.answers(len(names) * 4)
		if err != nil {
			return err
		}
		for _, a := range answers {
			if seen[a] = true; !slices.Contains(names, a) {
				delete(seen, a)
				return fmt.Errorf("%s to %s: %s answers, want %v", f.from.from.name, f.to.name, a, names)
			}
		}
		if len(seen) < len(names) {
			return fmt.Errorf("%s to %s: only %v answer, want %v", f.from.from.name, f.to.name, seen, names)
		}
		return nil
	})
}

// refused says that connections to each address are refused, at once: nobody waits for an answer that does not come.
func (f fromTo) refused() {
	f.t.Helper()
	for _, ip := range f.to.ips {
		within(f.t, programmed, func() error {
			one := f
			one.to.ips = []netip.Addr{ip}
			if _, err := one.answers(1); !errors.Is(err, syscall.ECONNREFUSED) {
				return fmt.Errorf("%s to %s at %s: %v, want connection refused", f.from.from.name, f.to.name, ip, err)
			}
			return nil
		})
	}
}

// datagram asks a UDP endpoint, from one port of a node or host outside.
func datagram(namespace string, from netip.AddrPort, to netip.AddrPort, question string) (string, error) {
	var conn *net.UDPConn
	err := sandbox.InNetns(namespace, func() (err error) {
		conn, err = net.DialUDP("udp", net.UDPAddrFromAddrPort(from), net.UDPAddrFromAddrPort(to))
		return err
	})
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte(question)); err != nil {
		return "", err
	}
	answer := make([]byte, 1<<13)
	n, err := conn.Read(answer)
	return string(answer[:n]), err
}
