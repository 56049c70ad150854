package egressip

import (
	"maps"
	"slices"

	"github.com/egret-net/egret/internal/world"
)

// renewObject looks at an EgressIP again, which may be gone.
func (a *assigner) renewObject(name string) {
	e, o := a.w.EgressIP(name), a.byName[name]
	if e == nil {
		delete(a.byName, name)
		return
	}
	if o == nil {
		o = &object{}
		a.byName[name] = o
	}
	if o.e == nil || !slices.Equal(o.e.IPs, e.IPs) {
		o.reserved = nil
		for _, ip := range e.IPs {
			o.reserved = append(o.reserved, a.reservedRefusal(ip))
		}
	}
	o.e = e
}

// sortObjects brings the objects into the order of precedence.
func (a *assigner) sortObjects() {
	a.objects = slices.AppendSeq(a.objects[:0], maps.Values(a.byName))
	slices.SortFunc(a.objects, func(x, y *object) int { return world.ByPrecedence(x.e, y.e) })
}
