package simulate

import (
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// skew knows what each object was, by itself. Kubernetes orders the versions of one resource only: a node may see a
// pod's new label before it sees that the EgressIP which that selects was deleted earlier. So a source is right, too,
// by a pod, a namespace, an EgressIP and a Service as each of them was within the promise. A node that could not
// follow learns afterwards of one kind before another.
type skew struct {
	groups    map[string][]version[string]          // by a pod's UID
	tenants   map[string][]version[string]          // by namespace
	egressIPs map[string][]version[*world.EgressIP] // by name; nil: deleted
	traffics  map[string][]version[*world.Traffic]  // by name; nil: deleted
	services  map[string][]version[*world.Service]
	served    map[string][]version[*world.EgressService]
	slices    map[string][]version[endpoint] // by name
}

// endpoint is a pod as an EndpointSlice names it.
type endpoint struct{ service, pod, address string }

// version is what an object was from a time on.
type version[T any] struct {
	from time.Time
	is   T
}

func newSkew() skew {
	return skew{groups: map[string][]version[string]{}, tenants: map[string][]version[string]{},
		egressIPs: map[string][]version[*world.EgressIP]{},
		traffics:  map[string][]version[*world.Traffic]{}, services: map[string][]version[*world.Service]{},
		served: map[string][]version[*world.EgressService]{}, slices: map[string][]version[endpoint]{}}
}

func (k *skew) see(at time.Time, o object, gone bool) {
	switch o := o.(type) {
	case *corev1.Pod:
		k.groups[string(o.UID)] = append(k.groups[string(o.UID)], version[string]{at, o.Labels["group"]})
	case *corev1.Namespace:
		k.tenants[o.Name] = append(k.tenants[o.Name], version[string]{at, o.Labels["tenant"]})
	case *v1.EgressIP:
		e := unless(gone, kube.EgressIP(o))
		k.egressIPs[o.Name] = append(k.egressIPs[o.Name], version[*world.EgressIP]{at, e})
	case *v1.EgressIPTraffic:
		traffic := unless(gone, kube.Traffic(o))
		k.traffics[o.Name] = append(k.traffics[o.Name], version[*world.Traffic]{at, traffic})
	case *corev1.Service:
		service := unless(gone, kube.Service(o, nil))
		k.services[o.Name] = append(k.services[o.Name], version[*world.Service]{at, service})
	case *v1.EgressService:
		served := unless(gone, kube.EgressService(o))
		k.served[o.Name] = append(k.served[o.Name], version[*world.EgressService]{at, served})
	case *discoveryv1.EndpointSlice:
		e := endpoint{}
		if is := o.Endpoints[0]; !gone {
			e = endpoint{o.Labels[discoveryv1.LabelServiceName], is.TargetRef.Name, is.Addresses[0]}
		}
		k.slices[o.Name] = append(k.slices[o.Name], version[endpoint]{at, e})
	}
}

// unless returns nothing of an object that is gone.
func unless[T any](gone bool, o *T) *T {
	if gone {
		return nil
	}
	return o
}

// within returns the versions that an object has had since a time. An object that is not there yet is as none.
func within[T any](all []version[T], since time.Time, none T) (out []T) {
	is := none
	for _, v := range all {
		if v.from.After(since) {
			out = append(out, is)
		}
		is = v.is
	}
	return append(out, is)
}

// explains says whether a source is right by a combination of versions that count since a time. promise is the time
// whose state a node has followed by now if nothing keeps it. Versions that had ended when the pod's CNI ADD read all
// objects do not count: its node asks others whether they have followed what it has read.
func (k *skew) explains(since, promise time.Time, p *pod, src, dst netip.Addr) bool {
	if p.isInOwnNetwork() { // EgressServices serve pods of the default network
		k = &skew{groups: k.groups, tenants: k.tenants, egressIPs: k.egressIPs, traffics: k.traffics}
	}
	own, since, promise := isOf(p.on, src), later(since, p.caughtUp), later(promise, p.caughtUp)
	for _, group := range within(k.groups[p.uid], since, "") {
		for _, tenant := range within(k.tenants[p.namespace()], since, "") {
			c := combination{k, since, group, tenant, dst, p}
			if own && c.isUnclaimed() || c.given(src) || c.byService(promise, src) {
				return true
			}
		}
	}
	return false
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// combination is what a pod's group and its namespace's label may have been at one time for a node, where packets go,
// and the versions of all else that count since a time.
type combination struct {
	*skew
	since         time.Time // since when versions count
	group, tenant string
	dst           netip.Addr
	pod           *pod
}

// given reports whether an EgressIP that selects has an address, or had it: what it selects anew leaves with its former
// address until another one is assigned.
func (c combination) given(src netip.Addr) bool {
	for name, all := range c.egressIPs {
		versions := within(all, c.since, nil)
		has := func(e *world.EgressIP) bool {
			return e != nil && (slices.Contains(e.IPs, src) || e.Assignee(src) != "")
		}
		serves := func(e *world.EgressIP) bool { return c.selects(e) && c.mayServe(e) }
		if first := slices.IndexFunc(versions, has); first >= 0 && slices.ContainsFunc(versions[first:], serves) &&
			!c.comesAfterOthers(name) {
			return true
		}
	}
	return false
}

// mayServe reports whether the destination is among an EgressIP's, and mayOmit whether it is not, by some versions of
// the EgressIPTraffics that are selected.
func (c combination) mayServe(e *world.EgressIP) bool {
	if e.Traffic == nil {
		return true
	}
	for _, all := range c.traffics {
		if slices.ContainsFunc(within(all, c.since, nil), func(t *world.Traffic) bool { return serves(e, t, c.dst) }) {
			return true
		}
	}
	return false
}

func (c combination) mayOmit(e *world.EgressIP) bool {
	if e.Traffic == nil {
		return false
	}
	for _, all := range c.traffics {
		if always(within(all, c.since, nil), func(t *world.Traffic) bool { return serves(e, t, c.dst) }) {
			return false
		}
	}
	return true
}

func serves(e *world.EgressIP, t *world.Traffic, dst netip.Addr) bool {
	return t != nil && e.Traffic.Matches(labels.Set(t.Labels)) && t.Networks.Contains(dst)
}

// byService reports whether a source is that of an EgressService whose Service selects the group, or was: pods that it
// begins to select leave with its previous address until another one is assigned. Within the promise a Service that
// selects the group may get the address later: the EgressService's status may come before the Service.
func (c combination) byService(promise time.Time, src netip.Addr) bool {
	has := func(s *world.Service) bool { return s != nil && slices.Contains(s.LoadBalancerIPs, src) }
	for name, all := range c.services {
		versions, late := within(all, c.since, nil), within(all, promise, nil)
		first, named := slices.IndexFunc(versions, has), c.mayBeEndpoint(name)
		mayBeBehind := func(s *world.Service) bool { return c.isBehind(s) || s != nil && named }
		if c.mayExist(name) && !c.isForbidden() && !c.comesAfterServices(name) &&
			(first >= 0 && slices.ContainsFunc(versions[first:], mayBeBehind) ||
				slices.ContainsFunc(late, has) && slices.ContainsFunc(late, mayBeBehind)) {
			return true
		}
	}
	return false
}

// mayExist reports whether a version of an EgressService counts.
func (c combination) mayExist(name string) bool {
	return slices.ContainsFunc(within(c.served[name], c.since, nil),
		func(s *world.EgressService) bool { return s != nil })
}

// mayBeEndpoint reports whether an EndpointSlice of a Service names the pod, by versions that count.
func (c combination) mayBeEndpoint(service string) bool {
	for _, all := range c.slices {
		names := func(e endpoint) bool {
			return e.service == service && e.pod == c.pod.name() && slices.ContainsFunc(c.pod.at.IPs,
				func(ip netip.Addr) bool { return e.address == ip.String() })
		}
		if slices.ContainsFunc(within(all, c.since, endpoint{}), names) {
			return true
		}
	}
	return false
}

// isBehind reports whether a Service selects the group.
func (c combination) isBehind(s *world.Service) bool {
	return s != nil && s.Pods.Matches(labelled(c.group))
}

func (c combination) selects(e *world.EgressIP) bool {
	return e != nil && c.tenant == "x" && e.Pods.Matches(labelled(c.group))
}

func labelled(group string) labels.Set { return labels.Set{"group": group} }

// isNamed reports whether the status of an object named a node as the holder of an address, by versions that count
// since a time.
func (k *skew) isNamed(since time.Time, node string, ip netip.Addr) bool {
	for _, all := range k.egressIPs {
		names := func(e *world.EgressIP) bool { return e != nil && e.Names(node, ip) }
		if slices.ContainsFunc(within(all, since, nil), names) {
			return true
		}
	}
	for _, all := range k.served {
		names := func(s *world.EgressService) bool { return s != nil && s.Names(node, ip) }
		if slices.ContainsFunc(within(all, since, nil), names) {
			return true
		}
	}
	return false
}

// isOf says whether an address is a node's own.
func isOf(m *machine, ip netip.Addr) bool {
	return slices.Contains(compiletest.Host(m.hardware).Addrs, ip)
}
