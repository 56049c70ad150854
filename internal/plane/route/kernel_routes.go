package route

import (
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/plan"
)

func (k *kernel) listRoutes() (map[plan.RouteKey][]heldRoute, error) {
	if _, err := k.listLinks(); err != nil {
		return nil, err
	}
	have := map[plan.RouteKey][]heldRoute{}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		list, err := k.netlink.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_UNSPEC},
			netlink.RT_FILTER_TABLE)
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			h := k.heldRoute(family, r)
			have[h.key] = append(have[h.key], h)
		}
	}
	return have, nil
}

func (k *kernel) heldRoute(family int, r netlink.Route) heldRoute {
	dst, ok := fromIPNet(r.Dst)
	if !ok {
		dst = defaultPrefix(family)
	}
	return heldRoute{
		key: plan.RouteKey{Table: r.Table, Dst: dst},
		route: plan.Route{Dev: k.name[r.LinkIndex], Via: nextHop(r.Gw, r.Via), Src: fromIP(r.Src), MTU: r.MTU,
			OnLink: onLink(r.Flags)},
		metric: r.Priority, ours: int(r.Protocol) == Protocol,
		plain: r.Type == unix.RTN_UNICAST && len(r.MultiPath) == 0 && r.Tos == 0 && r.Encap == nil,
	}
}

func (k *kernel) putRoute(key plan.RouteKey, r plan.Route, there bool) error {
	route := k.netlinkRoute(key, r)
	if there {
		return k.netlink.RouteReplace(route)
	}
	return k.netlink.RouteAdd(route)
}

func (k *kernel) netlinkRoute(key plan.RouteKey, r plan.Route) *netlink.Route {
	route := &netlink.Route{
		Table: key.Table, Dst: toIPNet(key.Dst), LinkIndex: k.index[r.Dev], MTU: r.MTU,
		Priority: ourMetric(key), Protocol: Protocol, Type: unix.RTN_UNICAST,
	}
	switch v4 := key.Dst.Addr().Is4(); {
	case v4 && r.Via.Is6():
		route.Via = &netlink.Via{AddrFamily: netlink.FAMILY_V6, Addr: r.Via.AsSlice()}
	case r.Via.IsValid():
		route.Gw = r.Via.AsSlice()
	case v4:
		route.Scope = netlink.SCOPE_LINK
	}
	if r.OnLink {
		route.Flags = int(netlink.FLAG_ONLINK)
	}
	if r.Src.IsValid() {
		route.Src = r.Src.AsSlice()
	}
	return route
}

func (k *kernel) delRoute(h heldRoute) error {
	err := k.netlink.RouteDel(&netlink.Route{Table: h.key.Table, Dst: toIPNet(h.key.Dst), Priority: h.metric,
		Protocol:  Protocol,
		LinkIndex: k.index[h.route.Dev], Scope: netlink.SCOPE_NOWHERE})
	return ignoreGone(err, unix.ESRCH, unix.ENODEV)
}
