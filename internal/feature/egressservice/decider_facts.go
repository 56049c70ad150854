package egressservice

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// facts are what is known of an EgressService before a host is chosen.
type facts struct {
	// reason and message say why nothing can be configured; "": it can.
	reason, message string
	sources         []netip.Addr    // the sources of its pods' packets, at most one a family
	spare           []netip.Addr    // ingress IPs beside these, which are not used
	taken           []string        // whose else other ingress IPs are, in words
	lacking         [2]bool         // families without a source, because ingress IPs are somebody else's
	awaited         [2]bool         // of these, those in which one is free as soon as a node has released it
	doubts          []string        // faults of sources that it keeps all the same
	strays          int             // endpoints with an address of the pod network, whoever has it
	others          int             // endpoints without
	local           map[string]bool // the nodes that can be the host for their ready endpoints; nil: all
}

// owners are the EgressServices that have what others may ask for, too.
type owners struct {
	label string // by its name
	of    func(source netip.Addr) string
	// standing returns the node that still holds an address for its previous object; "" without one.
	standing func(source netip.Addr) string
}

// factsOf looks at an EgressService and its Service.
func factsOf(w *world.View, s *world.EgressService, by owners) (f facts) {
	service := w.Service(s.Key())
	if f.noteProblems(w, s, service); f.reason != "" {
		return f
	}
	f.countEndpoints(w.Config, service)
	if s.SourceIPBy == world.SourceNetwork {
		return f
	}
	f.chooseSources(w, s, service, by)
	f.local = localOf(w.Config, service)
	switch label := labelOf(s); {
	case len(f.sources) == 0 && len(f.taken) > 0:
		f.reason, f.message = ReasonIngressIPConflict, strings.Join(f.taken, "; ")
	case len(f.sources) == 0:
		f.reason = ReasonNoIngressIP
		f.message = "the Service has no ingress IP yet that packets come with: its load balancer has to give it one"
	case len(label) > maxLabelName:
		f.reason = ReasonLabelTooLong
		f.message = fmt.Sprintf("no node can have the label %s%s: its name has %d characters, and a label's has %d at "+
			"the most: give the Service a shorter name", LabelPrefix, label, len(label), maxLabelName)
	case by.label != s.Key():
		f.reason = ReasonLabelAmbiguous
		f.message = fmt.Sprintf("the label %s%s is that of EgressService %s, which has it or is older: give one of the "+
			"Services another name", LabelPrefix, label, by.label)
	}
	return f
}

// networksAnnotation is api/v1's AnnotationEgressServiceNetworks.
const networksAnnotation = "egret.k8s.ovn.org/egress-service-networks"

// noPods says that no pod is behind the Service. It has a host all the same: the first pod, which no EndpointSlice
// names yet, would leave with another source until one is chosen and ready.
func (f *facts) noPods(namespace string) (reason, message string) {
	switch {
	case f.strays > 0:
		return ReasonNoEndpoints, fmt.Sprintf("no pod of namespace %s has an address of the Service's endpoints: pods of "+
			"another namespace are not behind it", namespace)
	case f.others > 0:
		return ReasonHostNetworkEndpoints, f.describeForeign() + ": run the Service's pods without hostNetwork"
	}
	return ReasonNoEndpoints, "the Service has no endpoints: none of its pods runs"
}

// noteProblems says what is the matter with the object and its Service.
func (f *facts) noteProblems(w *world.View, s *world.EgressService, service *world.Service) {
	switch {
	case !w.EgressServiceServed(s.Key()):
		f.reason = ReasonTooMany
		f.message = fmt.Sprintf("namespace %s has more than %d EgressServices, and only the oldest %[2]d are served: "+
			"delete others of them, or use another namespace", s.Namespace, world.MaxEgressServices)
	case len(s.Problems) > 0:
		f.reason, f.message = ReasonInvalidSpec, strings.Join(s.Problems, "; ")
	case !w.MayName(s.Namespace, s.Table.String()):
		f.reason = ReasonNetworkNotAllowed
		f.message = fmt.Sprintf("annotation %s of namespace %s does not list routing table %s: name one that it lists, "+
			"or ask an administrator to add it", networksAnnotation, s.Namespace, s.Table)
	case w.PrimaryNetwork(s.Namespace) != ref.DefaultNetwork:
		f.reason = ReasonNetworkUnsupported
		f.message = fmt.Sprintf("namespace %s has a network of its own, and EgressServices serve the default network "+
			"alone: use another namespace", s.Namespace)
	case service == nil:
		f.reason = ReasonNoService
		f.message = "there is no Service " + s.Key() + " with a cluster IP that this cluster's network serves"
	case !service.LoadBalancer:
		f.reason, f.message = ReasonNotLoadBalancer, "the Service is not of type LoadBalancer"
	}
}

// countEndpoints counts the endpoints' addresses, each once; a pod has one of each family.
func (f *facts) countEndpoints(c *world.Config, service *world.Service) {
	seen := map[netip.Addr]bool{}
	for _, p := range service.Ports {
		for _, e := range p.Endpoints {
			switch {
			case seen[e.Addr()]:
			case isPod(c, e.Addr()):
				f.strays++
			default:
				f.others++
			}
			seen[e.Addr()] = true
		}
	}
}

// isPod says whether an address is one of the pod network.
func isPod(c *world.Config, a netip.Addr) bool {
	return slices.ContainsFunc(c.ClusterSubnets, func(s world.ClusterSubnet) bool { return s.CIDR.Contains(a) })
}

// isInside says whether an address is one of the cluster's own ranges: feature service refuses a Service such an
// ingress IP, and as a source it would be somebody else's.
func isInside(c *world.Config, a netip.Addr) bool {
	_, what := c.Reserved(a)
	return what != ""
}

// describeForeign says what becomes of endpoints that are no pods of the pod network.
func (f *facts) describeForeign() string {
	return fmt.Sprintf("of the endpoints' addresses %d are not of the pod network, as those of host-networked pods: what "+
		"has them leaves as before", f.others)
}

// localOf are the nodes that can be the host for a Service's endpoints; nil: all.
func localOf(c *world.Config, service *world.Service) map[string]bool {
	if !service.ExternalLocal {
		return nil
	}
	return localTo(c, service)
}

// localTo are the nodes with a ready endpoint of a Service that is a pod of the pod network; nil if no node has one:
// then no packet comes in anywhere, and a pod that is not ready yet has its source from the host.
func localTo(c *world.Config, service *world.Service) map[string]bool {
	var out map[string]bool
	for _, p := range service.Ports {
		for _, e := range p.Endpoints {
			if e.Ready && e.Node != "" && isPod(c, e.Addr()) {
				if out == nil {
					out = map[string]bool{}
				}
				out[e.Node] = true
			}
		}
	}
	return out
}
