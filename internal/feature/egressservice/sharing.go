package egressservice

import (
	"maps"

	"github.com/egret-net/egret/internal/world"
)

// sharing is which EgressServices ask for what only one of them can have: a label, or a source address.
type sharing[K comparable] struct {
	of map[K]map[string]struct{} // EgressServices that ask for a thing
	by map[string][]K            // things that an EgressService asks for
}

func newSharing[K comparable]() sharing[K] {
	return sharing[K]{of: map[K]map[string]struct{}{}, by: map[string][]K{}}
}

// follow notes what an EgressService asks for now, and returns all that ask for any of that, or of what it asked for
// before.
func (x *sharing[K]) follow(key string, asks []K) map[string]struct{} {
	others := map[string]struct{}{}
	for _, k := range x.by[key] {
		maps.Copy(others, x.of[k])
		if delete(x.of[k], key); len(x.of[k]) == 0 {
			delete(x.of, k)
		}
	}
	if x.by[key] = asks; len(asks) == 0 {
		delete(x.by, key)
	}
	for _, k := range asks {
		if x.of[k] == nil {
			x.of[k] = map[string]struct{}{}
		}
		x.of[k][key] = struct{}{}
		maps.Copy(others, x.of[k])
	}
	return others
}

// first is the one that has a thing, of an EgressService and all that ask for it.
func (x *sharing[K]) first(w *world.World, k K, s *world.EgressService,
	precedes func(a, b *world.EgressService) bool) *world.EgressService {
	for key := range x.of[k] {
		if o := w.EgressService(key); o != nil && precedes(o, s) {
			s = o
		}
	}
	return s
}

// balanced is the EgressService with a key and its Service, if it leaves with an address of that: the Service is one
// for a load balancer. Another one keeps neither its label nor an address from anybody, or whoever may write in one
// namespace could take these from another's.
func balanced(w *world.World, key string) (*world.EgressService, *world.Service) {
	s, service := w.EgressService(key), w.ServiceSpec(key)
	if s == nil || s.SourceIPBy != world.SourceLoadBalancerIP || service == nil || !service.LoadBalancer {
		return nil, nil
	}
	return s, service
}
