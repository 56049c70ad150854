package world

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/ref"
)

// endpoints are those of one namespace's Services that have EgressServices. A pod of another namespace is no endpoint
// here, for an EndpointSlice can name any address, and its pods would leave with an address of somebody else. Neither
// is one that has got the address of a former endpoint, if the slice says which pod's that is.
type endpoints struct {
	all []string             // EgressServices by age, of which the first MaxEgressServices are served
	of  map[string][]backend // by EgressService that is served: its Service's endpoints, sorted, each once
	at  map[backend][]string // EgressServices by endpoint
}

// backend is an endpoint's address, and the name of the pod whose that is; "" where its slice does not say.
type backend struct {
	ip  netip.Addr
	pod string
}

func (b backend) compareTo(o backend) int {
	return cmp.Or(b.ip.Compare(o.ip), cmp.Compare(b.pod, o.pod))
}

// EgressServicesOf are the EgressServices of which a pod is an endpoint by its address of a family, ready or not, or
// which select it, in order of precedence, whether they decide about its packets or not. No EndpointSlice names a pod
// that starts: by that alone its first packets would leave with another source. A reader of more than a name asks for
// the EgressService.
func (w *View) EgressServicesOf(p *Pod, f Family) []*EgressService {
	if p.HostNetwork || p.Completed {
		return nil
	}
	w.noteRead(KindPod, p.Key()) // EgressServices that select it see a change of it
	w.noteRead(KindEgressServicesIn, p.Namespace)
	in := w.endpoints[p.Namespace]
	if in == nil {
		return nil
	}
	var out []*EgressService
	for _, ip := range f.OfAddrs(w.PodIPs(p, ref.DefaultNetwork)) {
		w.noteRead(KindEgressServicesAt, endpointKey(p.Namespace, ip))
		for _, b := range [...]backend{{ip: ip}, {ip, p.Name}} {
			for _, key := range in.at[b] {
				if s := w.egressServices[key]; !slices.Contains(out, s) {
					out = append(out, s)
				}
			}
		}
	}
	for key := range in.of {
		if s := w.egressServices[key]; w.services[key].selectsPod(p, f) && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, (*EgressService).ByAge)
	return out
}

// selectsPod says whether a Service is one of the family and selects a pod.
func (s *Service) selectsPod(p *Pod, f Family) bool {
	return s != nil && s.Pods != nil && s.Families()[f] && s.Pods.Matches(labels.Set(p.Labels))
}

// Families are those in which a Service has pods.
func (s *Service) Families() (has [2]bool) {
	for _, ip := range s.ClusterIPs {
		has[FamilyOf(ip)] = true
	}
	return has
}

// selectsAlike says whether two select the same pods, in the same families.
func (s *Service) selectsAlike(o *Service) bool {
	if s == nil || o == nil {
		return s == o
	}
	return sameSelector(s.Pods, o.Pods) && slices.Equal(s.ClusterIPs, o.ClusterIPs)
}

// notePodsOf notes the pods that any of some Services selects.
func (w *World) notePodsOf(services ...*Service) {
	for _, s := range services {
		if s != nil && s.Pods != nil {
			w.notePodsSelected(s.Namespace, s.Pods)
		}
	}
}

// EgressServiceIn says whether a namespace has an EgressService. It does not record.
func (w *World) EgressServiceIn(namespace string) bool { return w.endpoints[namespace] != nil }

// EgressEndpoints returns the addresses, "namespace/address", at which EgressServices have an endpoint. It does not
// record.
func (w *World) EgressEndpoints() (keys []string) {
	for namespace, in := range w.endpoints {
		for b := range in.at {
			keys = append(keys, endpointKey(namespace, b.ip))
		}
	}
	return keys
}

// EndpointsAt returns the EgressServices that have an endpoint at an address, by the name of the pod whose that is; ""
// where no EndpointSlice says which pod's it is. It does not record.
func (w *World) EndpointsAt(key string) map[string][]string {
	namespace, text, _ := strings.Cut(key, "/")
	ip, err := netip.ParseAddr(text)
	in := w.endpoints[namespace]
	if in == nil || err != nil {
		return nil
	}
	out := map[string][]string{}
	for _, service := range slices.Sorted(maps.Keys(in.of)) {
		all := in.of[service]
		first, _ := slices.BinarySearchFunc(all, ip, func(b backend, ip netip.Addr) int { return b.ip.Compare(ip) })
		for _, b := range all[first:] {
			if b.ip != ip {
				break
			}
			out[b.pod] = append(out[b.pod], service)
		}
	}
	return out
}

func endpointKey(namespace string, ip netip.Addr) string { return namespace + "/" + ip.String() }

// egressServiceChanged follows which namespaces have EgressServices, and where their endpoints are.
func (w *World) egressServiceChanged(old, now *EgressService) {
	key := cmp.Or(now, old).Key()
	w.updateNaming(key, old.placementOrNone(), now.placementOrNone())
	if old == nil || now == nil || !old.Created.Equal(now.Created) {
		w.reorderByAge(key, now)
	}
	w.noteHosts(now)
}

// reorderByAge gives an EgressService its place by age among those of its namespace, and another one the place that it
// takes or leaves among those that are served.
func (w *World) reorderByAge(key string, now *EgressService) {
	namespace, _, _ := strings.Cut(key, "/")
	in := w.endpoints[namespace]
	if in == nil {
		in = &endpoints{of: map[string][]backend{}, at: map[backend][]string{}}
		w.endpoints[namespace] = in
		w.noteChanged(KindEgressServicesIn, namespace)
	}
	last := in.lastServed()
	if in.all = withoutString(in.all, key); now != nil {
		i, _ := slices.BinarySearchFunc(in.all, now, func(o string, s *EgressService) int {
			return w.egressServices[o].ByAge(s)
		})
		in.all = slices.Insert(in.all, i, key)
	}
	w.updateServed(in, key)
	for _, other := range [...]string{last, in.lastServed()} {
		if _, was := in.of[other]; other != key && other != "" && was != in.isServed(other) {
			w.updateServed(in, other)
			w.noteChanged(KindEgressService, other)
		}
	}
	if len(in.all) == 0 {
		delete(w.endpoints, namespace)
		w.noteChanged(KindEgressServicesIn, namespace)
	}
}

// updateServed follows whether an EgressService is served, and since its place in the order may be another, who reads
// of it.
func (w *World) updateServed(in *endpoints, key string) {
	_, was := in.of[key]
	is := in.isServed(key)
	if was {
		w.endpointsMoved(key, nil, is)
	}
	if is {
		w.endpointsMoved(key, w.services[key], true)
	}
	if was || is {
		w.notePodsOf(w.services[key])
	}
}

func (in *endpoints) isServed(key string) bool {
	return slices.Contains(in.all[:min(len(in.all), MaxEgressServices)], key)
}

// lastServed returns the youngest EgressService that is served; "" without one.
func (in *endpoints) lastServed() string {
	if len(in.all) == 0 {
		return ""
	}
	return in.all[min(len(in.all), MaxEgressServices)-1]
}

// EgressServiceServed reports whether an EgressService is one of the oldest MaxEgressServices of its namespace.
func (w *View) EgressServiceServed(key string) bool {
	w.noteRead(KindEgressService, key)
	return w.servesEgressService(key)
}

func (w *View) servesEgressService(key string) bool {
	namespace, _, _ := strings.Cut(key, "/")
	if in := w.endpoints[namespace]; in != nil {
		_, is := in.of[key]
		return is
	}
	return false
}

// endpointsMoved follows the endpoints of a Service that has an EgressService that is served, or has it no more.
func (w *World) endpointsMoved(key string, s *Service, egress bool) {
	namespace, _, _ := strings.Cut(key, "/")
	for _, b := range w.endpoints[namespace].replaceBackends(key, s.sortedBackends(), egress) {
		w.noteChanged(KindEgressServicesAt, endpointKey(namespace, b.ip))
	}
}

// replaceBackends replaces an EgressService's endpoints, and returns those that came or went.
func (in *endpoints) replaceBackends(key string, now []backend, egress bool) (moved []backend) {
	was := in.of[key]
	if in.of[key] = now; !egress {
		delete(in.of, key)
	}
	for _, b := range was {
		if _, still := slices.BinarySearchFunc(now, b, backend.compareTo); !still {
			removeFromIndex(in.at, b, key)
			moved = append(moved, b)
		}
	}
	for _, b := range now {
		if _, before := slices.BinarySearchFunc(was, b, backend.compareTo); !before {
			in.at[b] = append(in.at[b], key)
			moved = append(moved, b)
		}
	}
	return moved
}

// sortedBackends are a Service's endpoints, sorted, each once.
func (s *Service) sortedBackends() []backend {
	if s == nil {
		return nil
	}
	var out []backend
	for _, p := range s.Ports {
		for _, e := range p.Endpoints {
			out = append(out, backend{e.Addr(), e.Pod})
		}
	}
	slices.SortFunc(out, backend.compareTo)
	return slices.Compact(out)
}
