package kube

import (
	"cmp"
	"maps"
	"slices"

	"github.com/egret-net/egret/internal/world"
)

// join puts Services and EndpointSlices together as they come. The loop that owns the world owns it: only changes touch
// it.
type join struct {
	services map[string]*servicePart
	slices   map[string]map[string]*slicePart // by Service, by slice
	of       map[string]string                // slice to Service
}

func newJoin() *join {
	return &join{services: map[string]*servicePart{}, slices: map[string]map[string]*slicePart{},
		of: map[string]string{}}
}

func (j *join) setService(w *world.World, p *servicePart) {
	key := p.Key()
	j.services[key] = p
	j.updateService(w, key)
}

func (j *join) delService(w *world.World, key string) {
	delete(j.services, key)
	j.updateService(w, key)
}

func (j *join) setSlice(w *world.World, p *slicePart) {
	key := p.key

	if old, had := j.of[key]; had && old != p.service {
		j.delSlice(w, key)
	}
	if j.slices[p.service] == nil {
		j.slices[p.service] = map[string]*slicePart{}
	}
	j.slices[p.service][key], j.of[key] = p, p.service
	j.updateService(w, p.service)
}

func (j *join) delSlice(w *world.World, key string) {
	service := j.of[key]
	delete(j.of, key)
	if delete(j.slices[service], key); len(j.slices[service]) == 0 {
		delete(j.slices, service)
	}
	j.updateService(w, service)
}

// updateService brings one Service of the world up to date.
func (j *join) updateService(w *world.World, key string) {
	p := j.services[key]
	if p == nil {
		w.DelService(key)
		return
	}
	parts := slices.SortedFunc(maps.Values(j.slices[key]),
		func(a, b *slicePart) int { return cmp.Compare(a.name, b.name) })
	s := joinSlices(p, parts)
	if s == nil {
		w.DelService(key)
		return
	}
	w.SetService(s)
}
