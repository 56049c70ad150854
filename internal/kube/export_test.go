package kube

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/egret-net/egret/internal/world"
)

// Joined brings Services and EndpointSlices into a world, as a Source does.
type Joined struct{ j *join }

// NewJoined has seen no object.
func NewJoined() Joined { return Joined{newJoin()} }

// SetService shows a Service.
func (x Joined) SetService(w *world.World, o *corev1.Service) { x.j.setService(w, servicePartOf(o)) }

// DelService shows that a Service is gone.
func (x Joined) DelService(w *world.World, key string) { x.j.delService(w, key) }

// SetSlice shows an EndpointSlice.
func (x Joined) SetSlice(w *world.World, o *discoveryv1.EndpointSlice) {
	x.j.setSlice(w, slicePartOf(o))
}

// DelSlice shows that an EndpointSlice is gone.
func (x Joined) DelSlice(w *world.World, key string) { x.j.delSlice(w, key) }

// LoadBalancer is the Service of several tests.
func LoadBalancer() *corev1.Service { return loadBalancer() }

// Slice is an EndpointSlice of several tests.
var Slice = slice
