package host

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/plane/route"
	"github.com/egret-net/egret/internal/world"
)

// bridgeAddress is the hardware address that the gateway bridge must have, and whether it has another.
func bridgeAddress(h route.Host, c *world.Config) (mac string, stale bool) {
	uplink, is := h.Link(c.UplinkInterface)
	bridge, there := h.Link(c.Bridge)
	return uplink.MAC, is && there && uplink.MAC != "" && uplink.MAC != bridge.MAC
}

// givenAgain says whether the uplink has an address that the bridge has, or a default route.
func givenAgain(h route.Host, c *world.Config) bool {
	if _, there := h.Link(c.Bridge); !there {
		return false
	}
	isDefault := func(r route.Route) bool {
		return r.Dev == c.UplinkInterface && r.Table == unix.RT_TABLE_MAIN && r.Dst.Bits() == 0
	}
	return slices.ContainsFunc(h.Routes, isDefault) || slices.ContainsFunc(h.Addrs, func(a route.Address) bool {
		return a.Dev == c.UplinkInterface && slices.ContainsFunc(h.Addrs, func(b route.Address) bool {
			return b.Dev == c.Bridge && b.Prefix.Addr() == a.Prefix.Addr() && !isLinkLocal6(a)
		})
	})
}

func isLinkLocal6(a route.Address) bool {
	return a.Prefix.Addr().Is6() && a.Prefix.Addr().IsLinkLocalUnicast()
}
