package kube

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/world"
)

// Service is a Service with the endpoints of its slices, or nil if it has no cluster IP or is another implementation's.
func Service(o *corev1.Service, slices []*discoveryv1.EndpointSlice) *world.Service {
	parts := make([]*slicePart, len(slices))
	for i, s := range slices {
		parts[i] = slicePartOf(s)
	}
	return joinSlices(servicePartOf(o), parts)
}

// servicePart is what is kept of a Service, to be joined with its slices.
type servicePart struct {
	world.Service // its Ports without endpoints
	notReadyToo   bool
	// ignored: it has no cluster IP, or another proxy serves it.
	ignored bool
}

// The labels of Services that a proxy leaves alone, as kube-proxy does.
const (
	labelProxyName = "service.kubernetes.io/service-proxy-name"
	labelHeadless  = corev1.IsHeadlessService
)

func servicePartOf(o *corev1.Service) *servicePart {
	list := o.Spec.ClusterIPs
	if len(list) == 0 {
		list = []string{o.Spec.ClusterIP}
	}
	ips, _ := parseAddrs(list) // "None" is no address
	_, others := o.Labels[labelProxyName]
	_, headless := o.Labels[labelHeadless]
	p := &servicePart{notReadyToo: o.Spec.PublishNotReadyAddresses, Service: world.Service{
		Namespace: o.Namespace, Name: o.Name, UID: string(o.UID), Version: o.ResourceVersion,
		Created: o.CreationTimestamp.Time, ClusterIPs: ips,
		ExternalLocal: o.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal,
		InternalLocal: valueOrZero(o.Spec.InternalTrafficPolicy) == corev1.ServiceInternalTrafficPolicyLocal,
		Affinity:      affinitySeconds(&o.Spec),
		Pods:          podsBehind(&o.Spec),
	}}
	p.ignored = len(ips) == 0 || others || headless || o.Spec.Type == corev1.ServiceTypeExternalName
	p.readExternal(o)
	for i, port := range o.Spec.Ports {
		p.addPort(i, port, o.Spec.Type)
	}
	slices.SortFunc(p.Ports, func(a, b world.ServicePort) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
	})
	p.Conditions = convertConditions(o.Status.Conditions)
	return p
}

// podsBehind selects the pods of a Service. One without a selector selects none, where another selector without
// requirements selects all.
func podsBehind(s *corev1.ServiceSpec) labels.Selector {
	if len(s.Selector) == 0 {
		return labels.Nothing()
	}
	return labels.SelectorFromSet(s.Selector)
}

// affinitySeconds is the time for which a client keeps its endpoint, in seconds; the API's default is three hours.
func affinitySeconds(s *corev1.ServiceSpec) int {
	if s.SessionAffinity != corev1.ServiceAffinityClientIP {
		return 0
	}
	if c := s.SessionAffinityConfig; c != nil && c.ClientIP != nil && valueOrZero(c.ClientIP.TimeoutSeconds) > 0 {
		return int(*c.ClientIP.TimeoutSeconds)
	}
	return int(corev1.DefaultClientIPServiceAffinitySeconds)
}

// readExternal is what the outside may use. A load balancer whose packets have another destination (ipMode Proxy) has
// no address here.
func (p *servicePart) readExternal(o *corev1.Service) {
	p.ExternalIPs = p.destinationAddrs("spec.externalIPs", o.Spec.ExternalIPs)
	if o.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return
	}
	var ingress []string
	for _, i := range o.Status.LoadBalancer.Ingress {
		if i.IPMode == nil || *i.IPMode == corev1.LoadBalancerIPModeVIP {
			ingress = append(ingress, i.IP)
		}
	}
	p.LoadBalancer = true
	p.LoadBalancerIPs = p.destinationAddrs("status.loadBalancer.ingress", ingress)
	if p.ExternalLocal && o.Spec.HealthCheckNodePort > 0 && o.Spec.HealthCheckNodePort < 1<<16 {
		p.HealthCheckPort = uint16(o.Spec.HealthCheckNodePort)
	}
	ranges, err := parsePrefixes(trimSpaces(o.Spec.LoadBalancerSourceRanges))
	if err != nil {
		p.Problems = append(p.Problems, fmt.Sprintf("spec.loadBalancerSourceRanges: %v: write ranges such as "+
			"192.0.2.0/24; this one lets nobody in", err))
	}
	if p.SourceRanges = destinations.Of(ranges...); err != nil && len(ranges) == 0 {
		nobody := netip.PrefixFrom(netip.IPv4Unspecified(), 32)
		p.SourceRanges = destinations.Of(nobody) // no list would let everybody in
	}
}

func trimSpaces(list []string) []string {
	var out []string
	for _, s := range list {
		out = append(out, strings.TrimSpace(s))
	}
	return out
}

// destinationAddrs are those of a field that can be the destination of a connection.
func (p *servicePart) destinationAddrs(field string, list []string) []netip.Addr {
	var out []netip.Addr
	seen := map[netip.Addr]bool{}
	for _, s := range list {
		a, err := parseAddr(s)
		switch {
		case s == "" || seen[a]:
		case err != nil || !a.IsGlobalUnicast():
			p.Problems = append(p.Problems,
				fmt.Sprintf("%s: %q is no address that a connection can have as destination: write a unicast IP "+
					"address of the network", field, s))
		default:
			seen[a] = true
			out = append(out, a)
		}
	}
	return out
}

func (p *servicePart) addPort(i int, port corev1.ServicePort, t corev1.ServiceType) {
	protocol := port.Protocol
	if protocol == "" {
		protocol = corev1.ProtocolTCP
	}
	if !isPort(port.Port) || port.NodePort != 0 && !isPort(port.NodePort) {
		p.Problems = append(p.Problems, fmt.Sprintf("spec.ports[%d]: port %d, node port %d: a port is between 1 and "+
			"65535", i, port.Port, port.NodePort))
		return
	}
	if !isProtocol(protocol) {
		p.Problems = append(p.Problems, plainText(fmt.Sprintf("spec.ports[%d]: protocol %q: it is TCP, UDP or SCTP", i,
			protocol)))
		return
	}
	n := world.ServicePort{Name: port.Name, Protocol: strings.ToLower(string(protocol)), Port: uint16(port.Port)}
	if t == corev1.ServiceTypeNodePort || t == corev1.ServiceTypeLoadBalancer {
		n.NodePort = uint16(port.NodePort)
	}
	p.Ports = append(p.Ports, n)
}

func isProtocol(p corev1.Protocol) bool {
	return p == corev1.ProtocolTCP || p == corev1.ProtocolUDP || p == corev1.ProtocolSCTP
}

func isPort(n int32) bool { return n > 0 && n < 1<<16 }

func valueOrZero[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// joinSlices puts a Service and its slices together.
func joinSlices(s *servicePart, parts []*slicePart) *world.Service {
	if s.ignored {
		return nil
	}
	out := s.Service
	boundService(&out, parts) // first, so that entries that are left out cost no memory
	out.Ports = slices.Clone(out.Ports)
	for i := range out.Ports {
		p := &out.Ports[i]
		for _, part := range parts {
			p.Endpoints = append(p.Endpoints, part.endpointsOf(p, s.notReadyToo)...)
		}
		p.Endpoints = distinctEndpoints(p.Endpoints)
	}
	return &out
}

// distinctEndpoints sorts, and keeps the best of what slices say of one address while an endpoint moves from one to
// another. Of which pod it is they must agree.
func distinctEndpoints(all []world.Endpoint) []world.Endpoint {
	rank := func(e world.Endpoint) int {
		switch {
		case e.Ready:
			return 0
		case e.Serving:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(all, func(a, b world.Endpoint) int {
		return cmp.Or(a.AddrPort.Compare(b.AddrPort), rank(a)-rank(b))
	})
	out := all[:0]
	for _, e := range all {
		if last := len(out) - 1; last < 0 || out[last].AddrPort != e.AddrPort {
			out = append(out, e)
		} else if out[last].Pod != e.Pod {
			out[last].Pod = ""
		}
	}
	return out
}
