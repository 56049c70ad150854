package kube

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/egret-net/egret/internal/world"
)

// Service is a Service with the endpoints of its slices, or nil if it has no cluster IP.
func Service(o *corev1.Service, slices []*discoveryv1.EndpointSlice) *world.Service {
	parts := make([]*slicePart, len(slices))
	for i, s := range slices {
		parts[i] = slicePartOf(s)
	}
	return joined(servicePartOf(o), parts)
}

// servicePart is what is kept of a Service, to be joined with its slices.
type servicePart struct {
	namespace, name string
	clusterIPs      []netip.Addr
	ports           []namedPort
	notReadyToo     bool
}

// slicePart is what is kept of an EndpointSlice.
type slicePart struct {
	service   string // "namespace/name"
	name      string
	ports     []namedPort
	endpoints []endpoint
}

type namedPort struct {
	name, protocol string
	port           uint16
}

type endpoint struct {
	ip    netip.Addr
	ready bool
}

func servicePartOf(o *corev1.Service) *servicePart {
	list := o.Spec.ClusterIPs
	if len(list) == 0 {
		list = []string{o.Spec.ClusterIP}
	}
	ips, _ := addrs(list) // "None" is no address
	p := &servicePart{namespace: o.Namespace, name: o.Name, clusterIPs: ips, notReadyToo: o.Spec.PublishNotReadyAddresses}
	for _, port := range o.Spec.Ports {
		if n, ok := portOf(port.Name, port.Protocol, port.Port); ok {
			p.ports = append(p.ports, n)
		}
	}
	return p
}

func slicePartOf(o *discoveryv1.EndpointSlice) *slicePart {
	p := &slicePart{service: o.Namespace + "/" + o.Labels[discoveryv1.LabelServiceName], name: o.Name}
	for _, port := range o.Ports {
		if n, ok := portOf(deref(port.Name), deref(port.Protocol), deref(port.Port)); ok {
			p.ports = append(p.ports, n)
		}
	}
	for _, e := range o.Endpoints {
		// Not told is ready (discovery/v1, EndpointConditions).
		ready := (e.Conditions.Ready == nil || *e.Conditions.Ready) && !deref(e.Conditions.Terminating)
		ips, _ := addrs(e.Addresses)
		for _, ip := range ips {
			p.endpoints = append(p.endpoints, endpoint{ip, ready})
		}
	}
	return p
}

func portOf(name string, protocol corev1.Protocol, port int32) (namedPort, bool) {
	if protocol == "" {
		protocol = corev1.ProtocolTCP
	}
	return namedPort{name, strings.ToLower(string(protocol)), uint16(port)}, port > 0 && port < 1<<16
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// joined puts a Service and its slices together.
func joined(s *servicePart, parts []*slicePart) *world.Service {
	if len(s.clusterIPs) == 0 {
		return nil
	}
	out := &world.Service{Namespace: s.namespace, Name: s.name, ClusterIPs: s.clusterIPs}
	for _, port := range s.ports {
		p := world.ServicePort{Protocol: port.protocol, Port: port.port}
		for _, part := range parts {
			p.Endpoints = append(p.Endpoints, part.behind(port, s.notReadyToo)...)
		}
		slices.SortFunc(p.Endpoints, netip.AddrPort.Compare)
		p.Endpoints = slices.Compact(p.Endpoints)
		out.Ports = append(out.Ports, p)
	}
	slices.SortFunc(out.Ports, func(a, b world.ServicePort) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
	})
	return out
}

// behind are a slice's endpoints of one port of the Service.
func (p *slicePart) behind(port namedPort, notReadyToo bool) []netip.AddrPort {
	i := slices.IndexFunc(p.ports, func(n namedPort) bool { return n.name == port.name && n.protocol == port.protocol })
	if i < 0 {
		return nil
	}
	var out []netip.AddrPort
	for _, e := range p.endpoints {
		if e.ready || notReadyToo {
			out = append(out, netip.AddrPortFrom(e.ip, p.ports[i].port))
		}
	}
	return out
}
