package vm

import (
	"context"
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

const namespace = "ns"

func (c *cluster) namespace() {
	c.api.put(c.t, "/api/v1/namespaces/"+namespace, corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: namespace},
	})
}

// pod is a network namespace on a node that the product's CNI plugin has attached.
type pod struct {
	c    *cluster
	name string
	node sandbox.Member
}

func (c *cluster) pod(name string, node sandbox.Member, labels map[string]string) pod {
	c.t.Helper()
	return c.podIn(namespace, name, node, labels)
}

// podIn records a pod and attaches it as a container runtime does, when the node is ready to.
func (c *cluster) podIn(namespace, name string, node sandbox.Member, labels map[string]string) pod {
	c.t.Helper()
	c.api.put(c.t, "/api/v1/namespaces/"+namespace+"/pods/"+name, corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name), Labels: labels},
		Spec:       corev1.PodSpec{NodeName: node.Name},
	})
	c.in(node.Name, "ip", "netns", "add", name)
	script := fmt.Sprintf(`echo '{"cniVersion":"1.0.0","name":"egret","type":"egret-cni"}' | CNI_COMMAND=ADD CNI_CONTAINERID=%[1]s CNI_NETNS=/run/netns/%[1]s `+
		`CNI_IFNAME=eth0 CNI_PATH=/opt/cni/bin CNI_ARGS='IgnoreUnknown=1;K8S_POD_NAMESPACE=%[2]s;K8S_POD_NAME=%[1]s;K8S_POD_UID=uid-%[1]s' `+
		`/opt/cni/bin/egret-cni || exit 1`, name, namespace)
	c.eventually("attach pod "+name, func(ctx context.Context) error {
		out, err := c.ExecIn(ctx, node.Name, "sh", "-c", script)
		if err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return nil
	})
	return pod{c, name, node}
}

// service records a Service of a pod. Connections are tracked in a node's logical switch once there is one, as there is
// in every cluster.
func (c *cluster) service(name string, ip netip.Addr, to netip.AddrPort, protocol corev1.Protocol) {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name,
		Labels: map[string]string{discoveryv1.LabelServiceName: name}}
	c.api.put(c.t, "/api/v1/namespaces/"+namespace+"/services/"+name, corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: meta,
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: ip.String(),
			ClusterIPs: []string{ip.String()}, Ports: []corev1.ServicePort{{Port: 80, Protocol: protocol}}},
	})
	port := int32(to.Port())
	c.api.put(c.t, "/apis/discovery.k8s.io/v1/namespaces/"+namespace+"/endpointslices/"+name, discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}, ObjectMeta: meta,
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{to.Addr().String()}}},
		Ports:       []discoveryv1.EndpointPort{{Port: &port, Protocol: &protocol}},
	})
}

// egressIP records one with a holder, as egret-controller would.
func (c *cluster) egressIP(name string, ips []netip.Addr, holder sandbox.Member, labels map[string]string) {
	c.egressIPOn(name, ips, []sandbox.Member{holder}, labels)
}

// egressIPOn is the same with several holders: each address has the next, in turn.
func (c *cluster) egressIPOn(name string, ips []netip.Addr, holders []sandbox.Member, labels map[string]string) {
	c.putEgressIP(egressIPObject(name, ips, holders, labels))
}

func egressIPObject(name string, ips []netip.Addr, holders []sandbox.Member, labels map[string]string) v1.EgressIP {
	e := v1.EgressIP{TypeMeta: metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "EgressIP"}}
	e.Name, e.UID = name, types.UID("uid-"+name)
	e.Spec.PodSelector.MatchLabels = labels
	for i, ip := range ips {
		e.Spec.EgressIPs = append(e.Spec.EgressIPs, ip.String())
		e.Status.Items = append(e.Status.Items, v1.EgressIPStatusItem{Node: holders[i%len(holders)].Name,
			EgressIP: ip.String()})
	}
	e.Status.InForce = []v1.IPFamily{v1.IPv4, v1.IPv6}
	return e
}

// egressIPTo is the same with the destinations of the EgressIPTraffics that have its name as a label.
func (c *cluster) egressIPTo(name string, ips []netip.Addr, holder sandbox.Member, labels map[string]string) {
	e := egressIPObject(name, ips, []sandbox.Member{holder}, labels)
	e.Spec.TrafficSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"for": name}}
	c.putEgressIP(e)
}

func (c *cluster) putEgressIP(e v1.EgressIP) {
	c.api.put(c.t, "/apis/"+v1.GroupVersion.String()+"/egressips/"+e.Name, e)
}

// ips are the pod's addresses, IPv4 first.
func (p pod) ips() []netip.Addr {
	p.c.t.Helper()
	return p.ipsOf("eth0")
}

// ipsOf are those of one of its interfaces.
func (p pod) ipsOf(dev string) []netip.Addr {
	p.c.t.Helper()
	var ips []netip.Addr
	fields := strings.Fields(p.c.in(p.node.Name, "ip", "netns", "exec", p.name, "ip", "-o", "addr", "show", "dev",
		dev, "scope", "global"))
	for i, f := range fields {
		if f == "inet" || f == "inet6" {
			ips = append(ips, netip.MustParsePrefix(fields[i+1]).Addr())
		}
	}
	slices.SortFunc(ips, netip.Addr.Compare)
	return ips
}

// isSeenAs connects to a port of each address of a server until there is an answer. The address that the server sees
// must be right at the first: there may be no packet for a while, but there is none with a wrong source.
func (p pod) isSeenAs(want []netip.Addr, server []netip.Addr, port uint16) {
	p.c.t.Helper()
	for _, ip := range server {
		at := netip.AddrPortFrom(ip, port)
		var have netip.Addr
		p.c.eventually(fmt.Sprintf("pod %s to %s", p.name, at), func(ctx context.Context) (err error) {
			have, err = p.c.ask(ctx, p.node.Name, at, "ip", "netns", "exec", p.name)
			return err
		})
		if !slices.Contains(want, have) {
			p.c.t.Errorf("pod %s on %s is seen by %s as %s, want one of %s", p.name, p.node.Name, at, have, want)
			continue
		}
		p.c.t.Logf("pod %s on %s is seen by %s as %s", p.name, p.node.Name, at, have)
	}
}

// ask is the address of which a server says that the connection comes from it.
func (c *cluster) ask(ctx context.Context, who string, server netip.AddrPort, prefix ...string) (netip.Addr, error) {
	out, err := c.ExecIn(ctx, who, append(prefix, "curl", "-gsS", "--max-time", "10",
		"http://"+server.String()+"/clientip")...)
	if err != nil {
		return netip.Addr{}, err
	}
	client, err := netip.ParseAddrPort(strings.TrimSpace(string(out)))
	return client.Addr(), err
}
