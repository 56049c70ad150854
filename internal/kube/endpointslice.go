package kube

import (
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/egret-net/egret/internal/world"
)

// slicePart is what is kept of an EndpointSlice.
type slicePart struct {
	key       string // "namespace/name"
	service   string // the same of its Service
	name      string
	ports     map[portName]uint16 // of several with one name the first
	endpoints []world.Endpoint    // without their ports
	has       perFamily           // how many endpoints
}

// portName is what a Service's ports and those of its slices have in common.
type portName struct{ name, protocol string }

// perFamily is a number for each IP family.
type perFamily [2]int

func slicePartOf(o *discoveryv1.EndpointSlice) *slicePart {
	p := &slicePart{key: keyOf(o.Namespace, o.Name), service: serviceOf(o), name: o.Name, ports: map[portName]uint16{}}
	for _, port := range o.Ports {
		protocol := valueOrZero(port.Protocol)
		if protocol == "" {
			protocol = corev1.ProtocolTCP
		}
		name := portName{valueOrZero(port.Name), strings.ToLower(string(protocol))}
		if n := valueOrZero(port.Port); isPort(n) && p.ports[name] == 0 {
			p.ports[name] = uint16(n)
		}
	}
	for _, e := range o.Endpoints {
		// Further addresses have no meaning, and kube-proxy does not look at them (discovery/v1, Endpoint). Names of
		// hosts are no endpoints.
		ips, _ := parseAddrs(e.Addresses[:min(len(e.Addresses), 1)])
		for _, ip := range ips {
			n := endpointOf(&e)
			n.Pod = podOf(o, &e)
			n.AddrPort = netip.AddrPortFrom(ip, 0)
			p.endpoints = append(p.endpoints, n)
			p.has[world.FamilyOf(ip)]++
		}
	}
	return p
}

// serviceOf is the Service that a slice is of, "namespace/name". Of the API servers' Service one slice counts, which
// has its name. They write that, and put back what others change of it (package reconcilers of
// k8s.io/kubernetes/pkg/controlplane). All pods reach what it names as they reach nodes, and no EgressIP keeps such an
// address.
func serviceOf(o *discoveryv1.EndpointSlice) string {
	service := keyOf(o.Namespace, o.Labels[discoveryv1.LabelServiceName])
	if service == world.APIServers && keyOf(o.Namespace, o.Name) != service {
		return keyOf(o.Namespace, "")
	}
	return service
}

// podOf is the name of the pod that an endpoint is, as world.Endpoint has it.
func podOf(o *discoveryv1.EndpointSlice, e *discoveryv1.Endpoint) string {
	r := e.TargetRef
	if r == nil || r.Kind != "Pod" || r.Name == "" {
		return ""
	}
	if r.Namespace != "" && r.Namespace != o.Namespace {
		return keyOf(r.Namespace, r.Name)
	}
	return r.Name
}

// endpointOf reads the conditions. An endpoint without the condition ready is ready; without serving, it serves if it
// is ready (discovery/v1, EndpointConditions).
func endpointOf(e *discoveryv1.Endpoint) world.Endpoint {
	c := e.Conditions
	out := world.Endpoint{Node: valueOrZero(e.NodeName), Ready: c.Ready == nil || *c.Ready,
		Terminating: valueOrZero(c.Terminating)}
	out.Serving = c.Serving != nil && *c.Serving || c.Serving == nil && out.Ready
	if e.Hints != nil {
		for _, n := range e.Hints.ForNodes {
			out.ForNodes = append(out.ForNodes, n.Name)
		}
		for _, z := range e.Hints.ForZones {
			out.ForZones = append(out.ForZones, z.Name)
		}
	}
	return out
}

// portNumber is the number that a slice has for a port of the Service; 0: it has none.
func (p *slicePart) portNumber(port *world.ServicePort) uint16 {
	return p.ports[portName{port.Name, port.Protocol}]
}

// endpointsOf are a slice's endpoints of one port of the Service.
func (p *slicePart) endpointsOf(port *world.ServicePort, notReadyToo bool) []world.Endpoint {
	n := p.portNumber(port)
	if n == 0 {
		return nil
	}
	out := make([]world.Endpoint, len(p.endpoints))
	for i, e := range p.endpoints {
		out[i] = e
		out[i].AddrPort = netip.AddrPortFrom(e.Addr(), n)
		out[i].Ready = e.Ready || notReadyToo
	}
	return out
}

// internStrings makes names of nodes and zones that are equal the same string.
func (p *slicePart) internStrings(string func(string) string) {
	for i := range p.endpoints {
		e := &p.endpoints[i]
		e.Node = string(e.Node)
		for j := range e.ForNodes {
			e.ForNodes[j] = string(e.ForNodes[j])
		}
		for j := range e.ForZones {
			e.ForZones[j] = string(e.ForZones[j])
		}
	}
}
