package host

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/ovs"
	"github.com/egret-net/egret/internal/plane/route"
	"github.com/egret-net/egret/internal/world"
)

// settleTime bounds how long ovs-vswitchd may take to change the bridge before it is asked again.
const settleTime = 5 * time.Second

// followUplink does to the gateway bridge what happens to its uplink. A hardware address that has become another, as a
// bond's does (fail_over_mac), becomes the bridge's: the flows and the gateway router have it by then, and what the
// host sends, and answers to ARP and ND, must come from it, too. Addresses and routes that the uplink has been given
// again, as a DHCP client does when it renews a lease, are taken off: the host would send by a port of the bridge, past
// its flows.
func (f *Follower) followUplink(ctx context.Context, h route.Host) error {
	mac, stale := bridgeAddress(h, f.Config)
	again := givenAgain(h, f.Config)
	if !stale && !again {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if stale {
		f.Log.Info("the uplink has another hardware address; the bridge takes it over", "address", mac)
	}
	if again {
		f.Log.Warn("somebody has given the uplink addresses or routes of the bridge again; they are taken off: have "+
			"what manages it leave it alone", "uplink", f.Config.UplinkInterface, "bridge", f.Config.Bridge)
	}
	return f.FollowUplink(ctx, ovs.Uplink{Bridge: f.Config.Bridge, Device: f.Config.UplinkInterface})
}

// bridgeAddress is the hardware address that the gateway bridge must have, and whether it has another.
func bridgeAddress(h route.Host, c *world.Config) (mac string, stale bool) {
	uplink, is := h.Link(c.UplinkInterface)
	bridge, there := h.Link(c.Bridge)
	return uplink.MAC, is && there && uplink.MAC != "" && uplink.MAC != bridge.MAC
}

// tellNeighbours has the host's addresses on the bridge announced, those that are new or have another hardware address
// than before. The kernel does not, and other nodes would send what goes by tunnels to the former one until they ask
// again, as clients of an address that floats between hosts would. An agent's first time is of all: while none ran,
// nobody has told what happened. An egress IP that a former agent left is not the host's, nor is what another machine
// may have. Until the bridge has its uplink's address there is nothing to tell.
func (f *Follower) tellNeighbours(h route.Host) {
	var own []plan.Announcement
	_, stale := bridgeAddress(h, f.Config)
	if bridge, _ := h.Link(f.Config.Bridge); !stale {
		for _, x := range h.Addrs {
			if x.Dev == f.Config.Bridge && !x.Prefix.Addr().IsLinkLocalUnicast() && !x.Ours && !x.Tentative {
				own = append(own, plan.Announcement{Dev: f.Config.Bridge, IP: x.Prefix.Addr(), MAC: bridge.MAC})
			}
		}
	}
	f.Tell(own)
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
