package explain

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// scope is what of a world a packet of a pod may meet: a few rows of a few nodes.
type scope struct {
	w        *world.World
	pod      *world.Pod
	objects  []ref.Object        // that may decide about its source
	services map[string]bool     // that it may be for, and the API servers'
	at       map[netip.Addr]bool // where it may end inside: its destination, and these Services' endpoints
	nodes    []string            // of all these, and the pod's own
}

func scopeOf(w *world.World, pod *world.Pod, p trace.Packet) scope {
	s := scope{w: w, pod: pod, objects: objectsOf(w, pod), services: map[string]bool{world.APIServers: true},
		at: map[netip.Addr]bool{p.Dst: true}}
	nodes := []string{pod.Node}
	for _, key := range w.Services() {
		if service := w.Service(key); isFor(w, service, p) {
			s.services[key] = true
			nodes = append(nodes, s.lead(service)...)
		}
	}
	for _, o := range s.objects {
		nodes = append(nodes, namedBy(w.PlacementOf(o.Key()))...)
	}
	for a := range s.at {
		nodes = append(nodes, slices.Concat(w.NodesAt(a), w.HostsAt(a), ownersOf(w, a))...)
	}
	slices.Sort(nodes)
	s.nodes = slices.DeleteFunc(slices.Compact(nodes), func(name string) bool { return w.Node(name) == nil })
	return s
}

// isFor says whether a packet may be for a Service: at an address of it, or at its node port on a node.
func isFor(w *world.World, s *world.Service, p trace.Packet) bool {
	node := len(w.NodesAt(p.Dst))+len(w.HostsAt(p.Dst)) > 0
	return slices.ContainsFunc(s.Frontends(), func(f world.Frontend) bool {
		return f.IP == p.Dst || node && !f.IP.IsValid() && f.Port == p.DstPort
	})
}

// lead takes in where a Service leads, and returns the nodes of its endpoints.
func (s scope) lead(service *world.Service) (nodes []string) {
	for _, p := range service.Ports {
		for _, e := range p.Endpoints {
			s.at[e.Addr()] = true
			nodes = append(nodes, e.Node)
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

// ownersOf are the nodes in whose pod subnets an address is.
func ownersOf(w *world.World, a netip.Addr) (nodes []string) {
	for _, name := range w.Nodes() {
		if slices.ContainsFunc(w.Node(name).Subnets, func(s netip.Prefix) bool { return s.Contains(a) }) {
			nodes = append(nodes, name)
		}
	}
	return nodes
}

// plan is what a node must hold of the scope, by what is known here.
func (s scope) plan(node string) *plan.State {
	return compile.Some(s.as(node), all.Features(), func(k world.Kind, key string) bool {
		switch k {
		case world.KindNode:
			return slices.Contains(s.nodes, key)
		case world.KindPod, world.KindAttachment:
			o := s.w.Pod(key)
			here := func(a netip.Addr) bool { return s.at[a] }
			return key == s.pod.Key() || o != nil && slices.ContainsFunc(o.IPs, here)
		case world.KindEgressIP:
			return slices.Contains(s.objects, ref.Of(ref.EgressIP, key))
		case world.KindService:
			return s.services[key]
		}
		return true
	})
}

// as is the world as a node's agent sees it that waits no longer for those who do not say that they hold an address:
// it did so for a second.
func (s scope) as(node string) *world.World {
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
