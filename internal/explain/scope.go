package explain

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/feature"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// scope is what of a world a packet of a pod may meet: a few rows of a few nodes.
type scope struct {
	kinds    feature.Kinds
	w        *world.World
	pod      *world.Pod
	objects  []ref.Object        // that may decide about its source
	services map[string]bool     // that it may be for, and the API servers'; they exist
	at       map[netip.Addr]bool // where it may end inside: its destination, and these Services' endpoints
	pods     []string            // with these addresses, and the pod
	nodes    []string            // of all these, and the pod's own
	networks []string            // the default one, and the pod's own
	near     []string            // nodes that a packet may reach before a Service is balanced, or may leave by
}

// mostNodes bounds the plans that are compiled for one packet: an agent does nothing else meanwhile.
const mostNodes = 64

func scopeOf(kinds feature.Kinds, w *world.World, pod *world.Pod, p trace.Packet) (scope, error) {
	s := scope{kinds: kinds, w: w, pod: pod, objects: objectsOf(w, pod), services: map[string]bool{},
		at: map[netip.Addr]bool{p.Dst: true}, networks: []string{ref.DefaultNetwork}}
	if own := w.PrimaryNetwork(pod.Namespace); own != ref.DefaultNetwork {
		s.networks = append(s.networks, own)
	}
	if w.Service(world.APIServers) != nil {
		s.services[world.APIServers] = true
	}
	var endpoints []string
	for _, key := range w.Services() {
		if service := w.Service(key); isFor(w, service, p) {
			s.services[key] = true
			endpoints = append(endpoints, s.addService(service)...)
		}
	}
	near := append(s.nodesAt(p.Dst), pod.Node)
	for _, o := range s.objects {
		near = append(near, namedBy(w.PlacementOf(o.Key()))...)
	}
	for a := range s.at {
		endpoints = append(endpoints, s.nodesAt(a)...)
	}
	s.pods, s.near, s.nodes = s.podsAt(), knownNodes(w, near), knownNodes(w, append(endpoints, near...))
	if len(s.nodes) > mostNodes {
		return s, fmt.Errorf("the packet may come to %d nodes, and %d can be followed: ask about the address of one "+
			"endpoint of its Service", len(s.nodes), mostNodes)
	}
	return s, nil
}

// nodesAt are the nodes that may have an address, on the host or for a pod.
func (s scope) nodesAt(a netip.Addr) []string {
	return slices.Concat(s.w.NodesAt(a), s.w.HostsAt(a), s.ownersOf(a))
}

// knownNodes are the nodes that there are, each once.
func knownNodes(w *world.World, names []string) []string {
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return w.Node(name) == nil })
}

// plansByNode are those of the scope's nodes.
func (s scope) plansByNode() trace.Network {
	net := trace.Network{}
	for _, node := range s.nodes {
		net[node] = s.planOf(node)
	}
	return net
}

// isFor says whether a packet may be for a Service: at an address of it, or at its node port on a node.
func isFor(w *world.World, s *world.Service, p trace.Packet) bool {
	node := len(w.NodesAt(p.Dst))+len(w.HostsAt(p.Dst)) > 0
	return slices.ContainsFunc(s.Frontends(), func(f world.Frontend) bool {
		return f.IP == p.Dst || node && !f.IP.IsValid() && f.Port == p.DstPort
	})
}

// addService takes in where a Service leads, and returns the nodes of its endpoints. EndpointSlices name addresses in
// the default network; a Service of a namespace with its own network leads to those that the same pods have there.
func (s scope) addService(service *world.Service) (nodes []string) {
	network := s.w.PrimaryNetwork(service.Namespace)
	for _, p := range service.Ports {
		for _, e := range p.Endpoints {
			ip, is := e.Addr(), true
			if network != ref.DefaultNetwork && e.Pod != "" {
				ip, is = s.w.AddressIn(network, service.Namespace+"/"+e.Pod, ip)
			}
			if is {
				s.at[ip] = true
				nodes = append(nodes, e.Node)
			}
		}
	}
	return nodes
}

// objectsOf are all that may decide about the source of a pod's packets.
func objectsOf(w *world.World, pod *world.Pod) []ref.Object {
	var out []ref.Object
	for _, f := range w.Config.Families() {
		for _, s := range w.EgressServicesOf(pod, f) {
			out = append(out, ref.Of(ref.EgressService, s.Key()))
		}
	}
	for _, e := range w.Selecting(pod) {
		out = append(out, ref.Of(ref.EgressIP, e.Name))
	}
	return out
}

func namedBy(p *world.Placement) (nodes []string) {
	for _, i := range p.Items {
		nodes = append(nodes, i.Node)
	}
	for _, l := range p.Leaving {
		nodes = append(nodes, l.Node)
	}
	return nodes
}

// ownersOf are the nodes in whose pod subnets an address is, of the networks that the packet meets.
func (s scope) ownersOf(a netip.Addr) (nodes []string) {
	for _, name := range s.w.Nodes() {
		n := s.w.Node(name)
		if slices.ContainsFunc(s.networks, func(network string) bool {
			return slices.ContainsFunc(n.In(network).Subnets, func(p netip.Prefix) bool { return p.Contains(a) })
		}) {
			nodes = append(nodes, name)
		}
	}
	return nodes
}

// planOf is what a node must hold of the scope, by what is known here.
func (s scope) planOf(node string) *plan.State {
	as := s.worldOf(node)
	attached := slices.DeleteFunc(slices.Clone(s.pods), func(key string) bool { return as.Attachment(key) == nil })
	nodes := s.nodes
	if !slices.Contains(s.near, node) { // an endpoint's: to others it has nothing to send
		nodes = append(slices.Clone(s.near), node)
	}
	return compile.Some(as, s.kinds.AllFeatures(), map[world.Kind][]string{
		world.KindNode: nodes, world.KindNetwork: s.networks, world.KindPod: s.pods, world.KindAttachment: attached,
		world.KindEgressIP: s.egressIPs(), world.KindService: slices.Sorted(maps.Keys(s.services)),
	})
}

func (s scope) egressIPs() (names []string) {
	for _, o := range s.objects {
		if o.Kind == ref.EgressIP {
			names = append(names, o.Name)
		}
	}
	return names
}

// podsAt are the pod, and those that say they have one of the addresses in one of the networks.
func (s scope) podsAt() []string {
	keys := []string{s.pod.Key()}
	for p := range s.w.EachPod() {
		if slices.ContainsFunc(s.networks, func(network string) bool { return s.isAt(p.SaidIn(network)) }) {
			keys = append(keys, p.Key())
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func (s scope) isAt(ips []netip.Addr) bool {
	return slices.ContainsFunc(ips, func(a netip.Addr) bool { return s.at[a] })
}

// worldOf is the world as a node's agent sees it that waits no longer for those who do not say that they hold an
// address: it did so for a second.
func (s scope) worldOf(node string) *world.World {
	as := s.w.As(node)
	for _, o := range s.objects {
		for _, a := range s.w.PlacementOf(o.Key()).Items {
			if !s.w.Holds(a.Node, o.Key(), a.IP) {
				as.SetOverdue(world.EgressAddress{Object: o.Key(), IP: a.IP}, a.Node)
			}
		}
	}
	return as
}
