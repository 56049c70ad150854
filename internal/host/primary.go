package host

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/route"
)

// preferredAddresses are the addresses of the uplink, one a family, that are the node's own as far as the kernel can
// tell: the source of the default route, else the oldest. A deprecated or a temporary one never is, and a virtual one
// (VRRP), which is alone in its subnet or younger than the others, only where there is no other. The kubelet's address,
// where it is known, goes before this (package world).
func preferredAddresses(h route.Host, gateway func(dev string) bool) []netip.Prefix {
	var out []netip.Prefix
	for _, v6 := range []bool{false, true} {
		candidates := slices.DeleteFunc(slices.Clone(h.Addrs), func(a route.Address) bool {
			temporary := v6 && a.Secondary
			return a.Prefix.Addr().Is6() != v6 || !gateway(a.Dev) || !countsAsHost(a) || a.Deprecated || temporary
		})
		if len(candidates) > 0 {
			out = append(out, slices.MinFunc(candidates, compareBySource(h.DefaultRoutes(v6, gateway))).Prefix)
		}
	}
	return out
}

// countsAsHost leaves out what is not the host's own, and what is valid on its link only.
func countsAsHost(a route.Address) bool {
	ip := a.Prefix.Addr()
	return isOnHost(a) && ip.IsGlobalUnicast() && !ip.IsLinkLocalUnicast()
}

// isOnHost leaves out addresses of the management port and of our own bridges, and those that we added.
func isOnHost(a route.Address) bool {
	return !a.Ours && !plan.IsManagementPort(a.Dev) && a.Dev != plan.IntegrationBridge && a.Dev != plan.LivenessBridge
}

// compareBySource orders addresses of one family as the kernel does when it picks a source for the default route: that
// which the route names, then those of the gateway's subnet, then by age (fib_info_update_nhc_saddr, Linux).
func compareBySource(defaults []route.Route) func(a, b route.Address) int {
	var byDefault route.Route
	if len(defaults) > 0 {
		byDefault = defaults[0]
	}
	last := func(is bool) int {
		if is {
			return 1
		}
		return 0
	}
	return func(a, b route.Address) int {
		return cmp.Or(
			last(a.Prefix.Addr() != byDefault.Src)-last(b.Prefix.Addr() != byDefault.Src),
			last(a.Secondary)-last(b.Secondary),
			last(a.Prefix.IsSingleIP())-last(b.Prefix.IsSingleIP()),
			last(!a.Prefix.Masked().Contains(byDefault.Via))-last(!b.Prefix.Masked().Contains(byDefault.Via)),
			cmp.Compare(a.Rank, b.Rank), a.Prefix.Addr().Compare(b.Prefix.Addr()),
		)
	}
}
