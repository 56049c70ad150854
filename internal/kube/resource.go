package kube

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/world"
)

// Resource names a kind of object in the API: "nodes".
type Resource string

// The resources that a Source can follow.
const (
	Nodes          Resource = "nodes"
	Namespaces     Resource = "namespaces"
	Pods           Resource = "pods"
	Services       Resource = "services"
	EndpointSlices Resource = "endpointslices"
	EgressIPs      Resource = "egressips"
	EgressNodes    Resource = "egressnodes"
)

func (c *Clients) of(r Resource) (rest.Interface, runtime.Object) {
	switch r {
	case Nodes:
		return c.Core, &corev1.Node{}
	case Namespaces:
		return c.Core, &corev1.Namespace{}
	case Pods:
		return c.Core, &corev1.Pod{}
	case Services:
		return c.Core, &corev1.Service{}
	case EndpointSlices:
		return c.Discovery, &discoveryv1.EndpointSlice{}
	case EgressIPs:
		return c.EgressIP, &v1.EgressIP{}
	default:
		return c.Egret, &egretv1.EgressNode{}
	}
}

func resourceOf(obj any) (Resource, error) {
	switch obj.(type) {
	case *corev1.Node:
		return Nodes, nil
	case *corev1.Namespace:
		return Namespaces, nil
	case *corev1.Pod:
		return Pods, nil
	case *corev1.Service:
		return Services, nil
	case *discoveryv1.EndpointSlice:
		return EndpointSlices, nil
	case *v1.EgressIP:
		return EgressIPs, nil
	case *egretv1.EgressNode:
		return EgressNodes, nil
	}
	return "", fmt.Errorf("%T is no object that a world has", obj)
}

func (s *Source) labels(m map[string]string) map[string]string {
	s.stringsMu.Lock()
	defer s.stringsMu.Unlock()
	return s.strings.labels(m)
}

func (s *Source) intern(p *slicePart) {
	s.stringsMu.Lock()
	defer s.stringsMu.Unlock()
	p.intern(s.strings.string)
}

// conversion says how an object of a resource comes into the world, and how it goes.
func (s *Source) conversion(r Resource) (convert func(obj any) Change, remove func(key string) Change) {
	switch r {
	case Nodes:
		return func(obj any) Change {
			n := Node(obj.(*corev1.Node))
			n.Labels = s.labels(n.Labels)
			return func(w *world.World) []world.Touch { return w.SetNode(n) }
		}, removal((*world.World).DelNode)
	case Namespaces:
		return func(obj any) Change {
			n := Namespace(obj.(*corev1.Namespace))
			return func(w *world.World) []world.Touch { return w.SetNamespace(n) }
		}, removal((*world.World).DelNamespace)
	case Pods:
		return func(obj any) Change {
			p := Pod(obj.(*corev1.Pod))
			p.Labels = s.labels(p.Labels)
			return func(w *world.World) []world.Touch { return w.SetPod(p) }
		}, removal((*world.World).DelPod)
	case EgressIPs:
		return func(obj any) Change {
			e := EgressIP(obj.(*v1.EgressIP))
			return func(w *world.World) []world.Touch { return w.SetEgressIP(e) }
		}, removal((*world.World).DelEgressIP)
	case EgressNodes:
		return func(obj any) Change {
			h := Holding(obj.(*egretv1.EgressNode))
			return func(w *world.World) []world.Touch { return w.SetHolding(h) }
		}, removal((*world.World).DelHolding)
	}
	return s.serviceConversion(r)
}

func removal(del func(w *world.World, key string) []world.Touch) func(string) Change {
	return func(key string) Change { return func(w *world.World) []world.Touch { return del(w, key) } }
}

// serviceConversion is that of Services and of their EndpointSlices, which are joined.
func (s *Source) serviceConversion(r Resource) (convert func(obj any) Change, remove func(key string) Change) {
	if r == Services {
		return func(obj any) Change {
			p := servicePartOf(obj.(*corev1.Service))
			return func(w *world.World) []world.Touch { return s.join.setService(w, p) }
		}, removal(s.join.delService)
	}
	return func(obj any) Change {
		o := obj.(*discoveryv1.EndpointSlice)
		key, p := keyOf(o.Namespace, o.Name), slicePartOf(o)
		s.intern(p)
		return func(w *world.World) []world.Touch { return s.join.setSlice(w, key, p) }
	}, removal(s.join.delSlice)
}
