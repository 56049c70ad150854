package route

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

func routeRow(k plan.RouteKey, r plan.Route) string { return "route " + k.String() + r.String() }

// seenKey is k as the kernel shows it.
func seenKey(k plan.RouteKey) plan.RouteKey {
	if k.Table == 0 {
		k.Table = unix.RT_TABLE_MAIN
	}
	k.Dst = k.Dst.Masked()
	return k
}

// ourMetric is the metric of our routes: the kernel's own default.
func ourMetric(k plan.RouteKey) int {
	if k.Dst.Addr().Is6() {
		return 1024 // IP6_RT_PRIO_USER
	}
	return 0
}

func (p *Plane) growRoutes(want *plan.State, r *refusals) error {
	if len(want.Routes) == 0 {
		return nil
	}
	links, err := p.stack.listLinks()
	if err != nil {
		return fmt.Errorf("list links: %w", err)
	}
	have, err := p.stack.listRoutes()
	if err != nil {
		return fmt.Errorf("list routes: %w", err)
	}
	for _, k := range routeOrder(want) {
		route, _ := want.Routes.Get(k)
		err := errInvalid
		if k.Dst.IsValid() {
			err = p.growRoute(seenKey(k), route, links, have[seenKey(k)])
		}
		if err := r.addRefusal(want.Routes.Owner(k), routeRow(k, route), err); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plane) growRoute(k plan.RouteKey, want plan.Route, links links, have []heldRoute) error {
	if err := plane.CheckDevice(want.Dev); err != nil {
		return err
	}
	if _, exists := links(want.Dev); !exists {
		return noLink(want.Dev)
	}
	at := func(h heldRoute) bool { return h.metric == ourMetric(k) }
	same := func(h heldRoute) bool { return h.plain && h.route == want }
	if i := slices.IndexFunc(have, func(h heldRoute) bool { return h.ours && at(h) }); i >= 0 {
		if same(have[i]) {
			return nil
		}
		return p.stack.putRoute(k, want, true)
	}
	if slices.ContainsFunc(have, same) {
		return nil
	}
	if slices.ContainsFunc(have, at) {
		return errors.New("a route of somebody else is in the way: remove it, or give it another metric")
	}
	return p.stack.putRoute(k, want, false)
}

func (p *Plane) shrinkRoutes(want *plan.State, _ *refusals) error {
	wanted := map[plan.RouteKey]bool{}
	for k := range want.Routes {
		wanted[seenKey(k)] = true
	}
	have, err := p.stack.listRoutes()
	if err != nil {
		return fmt.Errorf("list routes: %w", err)
	}
	for _, routes := range have {
		for _, h := range routes {
			if !h.ours || wanted[h.key] && h.metric == ourMetric(h.key) {
				continue
			}
			if err := p.stack.delRoute(h); err != nil {
				return fmt.Errorf("delete %s: %w", routeRow(h.key, h.route), err)
			}
		}
	}
	return nil
}

// routeOrder puts routes on link first: gateways are reached by them.
func routeOrder(want *plan.State) []plan.RouteKey {
	hasGateway := func(k plan.RouteKey) int {
		if r, _ := want.Routes.Get(k); r.Via.IsValid() {
			return 1
		}
		return 0
	}
	return slices.SortedFunc(maps.Keys(want.Routes), func(a, b plan.RouteKey) int {
		return cmp.Or(cmp.Compare(hasGateway(a), hasGateway(b)), cmp.Compare(a.Table, b.Table),
			a.Dst.Addr().Compare(b.Dst.Addr()), cmp.Compare(a.Dst.Bits(), b.Dst.Bits()))
	})
}
