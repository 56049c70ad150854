package world

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// EgressService is an EgressService object: pods behind the Service of the same name leave with its load balancer's
// address, or through a routing table of hosts. Problems has its unreadable parts.
type EgressService struct {
	Namespace, Name, UID string
	Created              time.Time
	Generation           int64
	SourceIPBy           SourceIPBy
	// Nodes are those that can be the host; it has no meaning with SourceNetwork.
	Nodes NodeSelector
	Table RoutingTable // by which packets are routed
	// Host is the node that the pods leave through, HostAll, or "" where nothing is configured.
	Host string
	// Placement has the host with each source address, and former hosts.
	Placement
	// Conditions are those of the status, as they stand.
	Conditions []Condition
	// Altered: the status says more than this, or the same otherwise than a controller writes it.
	Altered bool
	// DropWhenUnassigned: its pods' packets are dropped while it has no host (egret.k8s.ovn.org/when-unassigned).
	DropWhenUnassigned bool
	// UnassignedProblem says that the annotation about that cannot be read; then DropWhenUnassigned is true.
	UnassignedProblem string
	// Version is the object's resourceVersion, for those who write it.
	Version string
	// Problems say which field could not be read: then nothing is configured.
	Problems []string
}

// MaxEgressServices is how many EgressServices of one namespace are served, the oldest first. Each pod of the namespace
// asks all of them whether it is behind their Services, and each is a label of its host's Node.
const MaxEgressServices = 100

// HostAll is the host of an EgressService with SourceNetwork: each node for the endpoints that it runs. No node has
// that name.
const HostAll = "ALL"

// SourceIPBy is what decides about the source address of an EgressService's pods.
type SourceIPBy uint8

const (
	SourceLoadBalancerIP SourceIPBy = iota // the Service's ingress IP
	SourceNetwork                          // the link by which packets leave a node
)

// RoutingTable is a routing table of hosts, by number or else by name: a VRF's, or one of rt_tables. Neither is the
// host's own routing.
type RoutingTable struct {
	Number uint32
	Name   string
}

// String is the table as people write it; "" for the host's own routing.
func (t RoutingTable) String() string {
	if t.Number != 0 {
		return strconv.FormatUint(uint64(t.Number), 10)
	}
	return t.Name
}

// Key is "namespace/name", which is its Service's, too.
func (s *EgressService) Key() string { return s.Namespace + "/" + s.Name }

// anyNetwork is the entry of a namespace's list that stands for all routing tables.
const anyNetwork = "*"

// MayName says whether EgressServices of a namespace may name a routing table; "" is the host's own routing. Entries
// are compared as text: a table has one name more where a host says so, and no host decides what a namespace may name.
func (w *View) MayName(namespace, table string) bool {
	n := w.Namespace(namespace)
	return table == "" || n == nil || !n.LimitsNetworks || slices.Contains(n.Networks, anyNetwork) ||
		slices.Contains(n.Networks, table)
}

// Asks says whether it is to give packets of a family a source, or with SourceNetwork a way: in those of its Service's
// ingress IPs, and before there is any, in the Service's own. In another family pods leave with their node's address.
func (s *EgressService) Asks(service *Service, f Family) bool {
	switch {
	case service == nil:
		return false
	case s.SourceIPBy == SourceLoadBalancerIP && len(service.LoadBalancerIPs) > 0:
		return len(f.OfAddrs(service.LoadBalancerIPs)) > 0
	}
	return len(f.OfAddrs(service.ClusterIPs)) > 0
}

// Gives says whether an assignment is one of those that the status says since when they are: the host with a source
// address, or HostAll with an unspecified one.
func (s *EgressService) Gives(a Assignment) bool {
	if s.Host == HostAll {
		return a.Node == HostAll && a.IP.IsUnspecified()
	}
	return slices.Contains(s.Items, a)
}

// Sources are the source addresses that the status names, at most one a family.
func (s *EgressService) Sources() []netip.Addr {
	out := make([]netip.Addr, len(s.Items))
	for i, a := range s.Items {
		out[i] = a.IP
	}
	return out
}

// EgressServices lists all EgressServices, "namespace/name", sorted.
func (w *View) EgressServices() []string {
	w.noteRead(KindEgressServices, "")
	return slices.Sorted(maps.Keys(w.egressServices))
}

// HasBeenHost reports whether this node has been the host of an EgressService since this process began. Only then does
// this node lead its own pods' packets through its kernel for one. It stays true after the last EgressService has gone:
// for a moment switches still send packets by flows that they have cached, and tenants who create and delete
// EgressServices change nothing on nodes.
func (w *View) HasBeenHost() bool {
	w.noteRead(KindHasBeenHost, "")
	return w.hostsEgress(w.Self) || w.hostsEgress(HostAll)
}

func (w *View) hostsEgress(node string) bool {
	_, is := w.egressHosts[node]
	return is
}

// noteHosts remembers the nodes that an EgressService's status names.
func (w *World) noteHosts(s *EgressService) {
	if s == nil {
		return
	}
	before := w.HasBeenHost()
	names := []string{s.Host}
	for _, a := range s.Items {
		names = append(names, a.Node)
	}
	for _, l := range s.Leaving {
		names = append(names, l.Node)
	}
	for _, name := range names {
		w.egressHosts[name] = struct{}{}
	}
	if before == w.HasBeenHost() {
		return
	}
	w.noteChanged(KindHasBeenHost, "")
}

// EgressService is the EgressService of the Service with a key, or nil.
func (w *View) EgressService(key string) *EgressService {
	w.noteRead(KindEgressService, key)
	return w.egressServices[key]
}

// ByAge is the order of precedence of EgressServices: creation, then namespace and name.
func (s *EgressService) ByAge(o *EgressService) int {
	return cmp.Or(s.Created.Compare(o.Created), cmp.Compare(s.Key(), o.Key()))
}

// SetEgressService adds or replaces an EgressService.
func (w *World) SetEgressService(s *EgressService) { Set(w, KindEgressService, s) }

// DelEgressService removes an EgressService.
func (w *World) DelEgressService(key string) {
	Del[EgressService](w, KindEgressService, key)
}

func (s *EgressService) sameSpec(o *EgressService) bool {
	return s.UID == o.UID && s.Created.Equal(o.Created) && s.Generation == o.Generation &&
		s.SourceIPBy == o.SourceIPBy && s.Nodes.sameSelector(o.Nodes) && s.Table == o.Table && s.Host == o.Host &&
		s.Placement.Same(&o.Placement) && slices.Equal(s.Problems, o.Problems) &&
		s.DropWhenUnassigned == o.DropWhenUnassigned && s.UnassignedProblem == o.UnassignedProblem
}

// Hosting is what is decided about an EgressService, beside conditions.
type Hosting struct {
	Host string
	Placement
}

// decidesEgressService is how that stands over EgressServices.
func decidesEgressService() Decides[EgressService] {
	return Decides[EgressService]{UID: func(s *EgressService) string { return s.UID }, Over: hostedOver,
		Same: func(a, b *EgressService) bool {
			return a.Host == b.Host && a.Placement.Same(&b.Placement) && SameConditions(a.Conditions, b.Conditions) &&
				a.Altered == b.Altered
		}}
}

func hostedOver(shown *EgressService, d Decision) *EgressService {
	out := *shown
	if h, is := d.Status.(Hosting); is {
		out.Host, out.Placement, out.Altered = h.Host, h.withShown(&shown.Placement), false
	}
	out.Conditions = ConditionsOver(shown.Conditions, d.Conditions)
	return &out
}

// placementOrNone is where the addresses are; nowhere, of nil.
func (s *EgressService) placementOrNone() Placement {
	if s == nil {
		return Placement{}
	}
	return s.Placement
}
