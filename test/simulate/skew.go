package simulate

import (
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	groups    map[string][]version[string] // by a pod's UID
	tenants   []version[string]
	egressIPs map[string][]version[*world.EgressIP] // by name; nil: deleted
	traffics  map[string][]version[*world.Traffic]  // by name; nil: deleted
	services  map[string][]version[*corev1.Service]
	served    map[string][]version[*world.EgressService]
}

// version is what an object was from a time on.
type version[T any] struct {
	from time.Time
	is   T
}

func newSkew() skew {
	return skew{groups: map[string][]version[string]{}, egressIPs: map[string][]version[*world.EgressIP]{},
		traffics: map[string][]version[*world.Traffic]{}, services: map[string][]version[*corev1.Service]{},
		served: map[string][]version[*world.EgressService]{}}
}

func (k *skew) see(at time.Time, o object, gone bool) {
	switch o := o.(type) {
	case *corev1.Pod:
		k.groups[string(o.UID)] = append(k.groups[string(o.UID)], version[string]{at, o.Labels["group"]})
	case *corev1.Namespace:
		k.tenants = append(k.tenants, version[string]{at, o.Labels["tenant"]})
	case *v1.EgressIP:
		e := unless(gone, kube.EgressIP(o))
		k.egressIPs[o.Name] = append(k.egressIPs[o.Name], version[*world.EgressIP]{at, e})
	case *v1.EgressIPTraffic:
		traffic := unless(gone, kube.Traffic(o))
		k.traffics[o.Name] = append(k.traffics[o.Name], version[*world.Traffic]{at, traffic})
	case *corev1.Service:
		k.services[o.Name] = append(k.services[o.Name], version[*corev1.Service]{at, unless(gone, o)})
	case *v1.EgressService:
		served := unless(gone, kube.EgressService(o))
		k.served[o.Name] = append(k.served[o.Name], version[*world.EgressService]{at, served})
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
// whose state a node has followed by now if nothing keeps it.
func (k *skew) explains(since, promise time.Time, p *pod, src, dst netip.Addr) bool {
	for _, group := range within(k.groups[p.uid], since, "") {
		for _, tenant := range within(k.tenants, since, "") {
			if k.given(since, group, tenant, src, dst) || k.byService(since, promise, group, src) ||
				isOf(p.on, src) && k.free(since, group, tenant, dst) && k.unserved(since, group, dst) {
				return true
			}
		}
	}
	return false
}

// given reports whether an EgressIP that selects has an address, or had it: what it selects anew leaves with its former
// address until another one is assigned.
func (k *skew) given(since time.Time, group, tenant string, src, dst netip.Addr) bool {
	for _, all := range k.egressIPs {
		versions := within(all, since, nil)
		has := func(e *world.EgressIP) bool { return e != nil && slices.Contains(e.IPs, src) }
		serves := func(e *world.EgressIP) bool { return selects(e, group, tenant) && k.mayServe(since, e, dst) }
		if first := slices.IndexFunc(versions, has); first >= 0 && slices.ContainsFunc(versions[first:], serves) {
			return true
		}
	}
	return false
}

// mayServe reports whether a destination is among an EgressIP's, and mayOmit whether it is not, by some versions of the
// EgressIPTraffics that are selected.
func (k *skew) mayServe(since time.Time, e *world.EgressIP, dst netip.Addr) bool {
	if e.Traffic == nil {
		return true
	}
	for _, all := range k.traffics {
		if slices.ContainsFunc(within(all, since, nil), func(t *world.Traffic) bool { return serves(e, t, dst) }) {
			return true
		}
	}
	return false
}

func (k *skew) mayOmit(since time.Time, e *world.EgressIP, dst netip.Addr) bool {
	if e.Traffic == nil {
		return false
	}
	for _, all := range k.traffics {
		if !slices.ContainsFunc(within(all, since, nil), func(t *world.Traffic) bool { return !serves(e, t, dst) }) {
			return false
		}
	}
	return true
}

func serves(e *world.EgressIP, t *world.Traffic, dst netip.Addr) bool {
	return t != nil && e.Traffic.Matches(labels.Set(t.Labels)) && t.Networks.Contains(dst)
}

// free says whether no EgressIP need have a claim that is in force.
func (k *skew) free(since time.Time, group, tenant string, dst netip.Addr) bool {
	for _, all := range k.egressIPs {
		if !slices.ContainsFunc(within(all, since, nil), func(e *world.EgressIP) bool {
			return !selects(e, group, tenant) || !e.InForce[world.FamilyOf(dst)] || k.mayOmit(since, e, dst)
		}) {
			return false
		}
	}
	return true
}

// byService reports whether a source is that of an EgressService whose Service selects a group, or was: pods that it
// begins to select leave with its previous address until another one is assigned. Within the promise a Service that
// selects the group may get the address later: the EgressService's status may come before the Service.
func (k *skew) byService(since, promise time.Time, group string, src netip.Addr) bool {
	has := func(o *corev1.Service) bool { return o != nil && hasIngress(o, src) }
	selects := func(o *corev1.Service) bool { return behind(o, group) }
	for name, all := range k.services {
		versions, late := within(all, since, nil), within(all, promise, nil)
		exists := slices.ContainsFunc(within(k.served[name], since, nil),
			func(e *world.EgressService) bool { return e != nil })
		first := slices.IndexFunc(versions, has)
		if exists && (first >= 0 && slices.ContainsFunc(versions[first:], selects) ||
			slices.ContainsFunc(late, has) && slices.ContainsFunc(late, selects)) {
			return true
		}
	}
	return false
}

func hasIngress(o *corev1.Service, ip netip.Addr) bool {
	return slices.ContainsFunc(o.Status.LoadBalancer.Ingress,
		func(i corev1.LoadBalancerIngress) bool { return i.IP == ip.String() })
}

// unserved reports whether no EgressService need have a claim that is in force.
func (k *skew) unserved(since time.Time, group string, dst netip.Addr) bool {
	for name, all := range k.services {
		apart := slices.ContainsFunc(within(all, since, nil),
			func(o *corev1.Service) bool { return !behind(o, group) })
		if !apart && !slices.ContainsFunc(within(k.served[name], since, nil), func(e *world.EgressService) bool {
			return e == nil || !e.InForce[world.FamilyOf(dst)]
		}) {
			return false
		}
	}
	return true
}

// behind reports whether a Service selects a group.
func behind(o *corev1.Service, group string) bool {
	return o != nil && o.Spec.Selector["group"] == group
}

func selects(e *world.EgressIP, group, tenant string) bool {
	return e != nil && tenant == "x" && e.Pods.Matches(labelled(group))
}

func labelled(group string) labels.Set { return labels.Set{"group": group} }

// isOf says whether an address is a node's own.
func isOf(m *machine, ip netip.Addr) bool {
	return slices.Contains(compiletest.Host(m.hardware).Addrs, ip)
}
