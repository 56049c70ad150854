package world

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/destinations"
)

// Service is a Service that has cluster IPs, with the endpoints of its slices merged.
type Service struct {
	Namespace, Name, UID string
	Created              time.Time
	ClusterIPs           []netip.Addr
	// LoadBalancerIPs are those that the status names and that packets come with as destination; ExternalIPs are of the
	// spec.
	LoadBalancerIPs, ExternalIPs []netip.Addr
	// LoadBalancer: it is of that type, whether it has addresses or not.
	LoadBalancer bool
	// SourceRanges are the clients outside that may use LoadBalancerIPs; none: all.
	SourceRanges destinations.Set
	// ExternalLocal and InternalLocal are the traffic policies Local: to endpoints on the node that the packet is on,
	// or to none.
	ExternalLocal, InternalLocal bool
	// Pods selects those of its namespace that are behind it; nothing where somebody else writes its endpoints.
	Pods labels.Selector
	// Affinity is for how long a client keeps its endpoint, in seconds; 0: not at all.
	Affinity int
	// HealthCheckPort is where a load balancer asks each node for endpoints of its own; 0: nowhere.
	HealthCheckPort uint16
	Ports           []ServicePort
	// Conditions are those of the status, as they stand.
	Conditions []Condition
	// Version is the object's resourceVersion, for those who write it.
	Version string
	// Problems say which address could not be read. The readable part stands.
	Problems []string
}

// APIServers is the key of the one Service that API servers keep for themselves: each lists its own address among its
// endpoints.
const APIServers = "default/kubernetes"

// OpenServiceKeys returns the keys of the open Services, which pods of all networks reach by their cluster IPs:
// OVN-Kubernetes' flag --udn-allowed-default-services has this default.
func OpenServiceKeys() []string { return []string{APIServers, "kube-system/kube-dns"} }

// Key is "namespace/name".
func (s *Service) Key() string { return s.Namespace + "/" + s.Name }

// ServicePort is one port with all endpoints behind it, sorted by address and port, each once.
type ServicePort struct {
	Name      string
	Protocol  string // "tcp", "udp", "sctp"
	Port      uint16
	NodePort  uint16 // 0: none
	Endpoints []Endpoint
}

// Endpoint is an address and port behind a Service, with the conditions of discovery/v1 (EndpointConditions).
type Endpoint struct {
	netip.AddrPort
	Node string // "" where its slice does not say
	// Pod is the name of the pod that has the address, by its slice; "" where that does not say, and what is no pod's
	// name where it is not one of its namespace.
	Pod string
	// Ready is what new connections may go to; with publishNotReadyAddresses every endpoint is. Serving is the same
	// whether or not the pod is Terminating.
	Ready, Serving, Terminating bool
	// ForNodes and ForZones are hints: the nodes and zones that should use the endpoint.
	ForNodes, ForZones []string
}

// ServedEverywhere says whether a Service asks for an address for the outside, at which every node serves it: with the
// external traffic policy Local a node serves it with its own pods.
func (s *Service) ServedEverywhere() bool {
	return s != nil && !s.ExternalLocal && (len(s.LoadBalancerIPs) > 0 || len(s.ExternalIPs) > 0 ||
		slices.ContainsFunc(s.Ports, func(p ServicePort) bool { return p.NodePort != 0 }))
}

// Frontend is what a connection to a Service has as destination. A node port's has no IP: it is every node's.
type Frontend struct {
	IP       netip.Addr
	Protocol string
	Port     uint16
}

// String is "172.18.0.100:80/tcp", or "node port 30080/tcp".
func (f Frontend) String() string {
	if !f.IP.IsValid() {
		return fmt.Sprintf("node port %d/%s", f.Port, f.Protocol)
	}
	return netip.AddrPortFrom(f.IP, f.Port).String() + "/" + f.Protocol
}

// Services lists all Services, "namespace/name".
func (w *View) Services() []string {
	w.noteRead(KindServices, "")
	return slices.Collect(maps.Keys(w.services))
}

// Service is a Service, or nil.
func (w *View) Service(key string) *Service {
	w.noteRead(KindEndpoints, key)
	return w.ServiceSpec(key)
}

// ServiceSpec is the same, for who does not look at its endpoints: most changes of a Service are theirs.
func (w *View) ServiceSpec(key string) *Service {
	w.noteRead(KindService, key)
	return w.services[key]
}

// SetService adds or replaces a Service.
func (w *World) SetService(s *Service) { Set(w, KindService, s) }

// DelService removes a Service.
func (w *World) DelService(key string) { Del[Service](w, KindService, key) }

func (w *World) serviceChanged(old, now *Service) {
	key := cmp.Or(now, old).Key()
	w.updateFrontendClaims(old, now)
	w.relocateIn(w.servicesAt, KindServiceAddress, key, old.allAddresses(), now.allAddresses())
	w.relocateIn(w.balancersAt, KindBalancerAddress, key, old.balancerAddresses(), now.balancerAddresses())
	if !sameEndpoints(old, now) {
		w.noteChanged(KindEndpoints, key)
	}
	if w.servesEgressService(key) {
		w.endpointsMoved(key, now, true)
		if !old.selectsAlike(now) {
			w.notePodsOf(old, now)
		}
	}
}

// sameSpec compares all but endpoints and Version.
func (s *Service) sameSpec(o *Service) bool {
	return s.UID == o.UID && s.Created.Equal(o.Created) && slices.Equal(s.ClusterIPs, o.ClusterIPs) &&
		slices.Equal(s.LoadBalancerIPs, o.LoadBalancerIPs) && slices.Equal(s.ExternalIPs, o.ExternalIPs) &&
		s.LoadBalancer == o.LoadBalancer && slices.Equal(s.SourceRanges, o.SourceRanges) &&
		s.ExternalLocal == o.ExternalLocal && s.InternalLocal == o.InternalLocal && s.Affinity == o.Affinity &&
		sameSelector(s.Pods, o.Pods) && s.HealthCheckPort == o.HealthCheckPort &&
		slices.EqualFunc(s.Ports, o.Ports, ServicePort.sameSpec) &&
		SameConditions(s.Conditions, o.Conditions) && slices.Equal(s.Problems, o.Problems)
}

// sameSpec compares all but endpoints.
func (p ServicePort) sameSpec(o ServicePort) bool {
	return p.Name == o.Name && p.Protocol == o.Protocol && p.Port == o.Port && p.NodePort == o.NodePort
}

func sameEndpoints(a, b *Service) bool {
	return a != nil && b != nil && slices.EqualFunc(a.Ports, b.Ports, func(p, o ServicePort) bool {
		return slices.EqualFunc(p.Endpoints, o.Endpoints, Endpoint.sameEndpoint)
	})
}

func (e Endpoint) sameEndpoint(o Endpoint) bool {
	return e.AddrPort == o.AddrPort && e.Node == o.Node && e.Pod == o.Pod && e.Ready == o.Ready &&
		e.Serving == o.Serving && e.Terminating == o.Terminating && slices.Equal(e.ForNodes, o.ForNodes) &&
		slices.Equal(e.ForZones, o.ForZones)
}

// decidesService is how refusals stand over Services.
func decidesService() Decides[Service] {
	return Decides[Service]{
		UID: func(s *Service) string { return s.UID },
		Over: func(shown *Service, d Decision) *Service {
			out := *shown
			out.Conditions = ConditionsOver(shown.Conditions, d.Conditions)
			return &out
		},
		Same: func(a, b *Service) bool { return SameConditions(a.Conditions, b.Conditions) },
	}
}
