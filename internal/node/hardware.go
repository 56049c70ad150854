package node

import (
	"context"
	"time"

	"github.com/egret-net/egret/internal/plane/ovs"
	"github.com/egret-net/egret/internal/plane/route"
	"github.com/egret-net/egret/internal/world"
)

// settleTime bounds how long ovs-vswitchd may take to change the bridge before it is asked again.
const settleTime = 5 * time.Second

// followHardware gives the gateway bridge the hardware address of its uplink where that has become another, as a bond's
// does (fail_over_mac). The flows and the gateway router have it by then: what the host sends, and answers to ARP and
// ND, must come from it, too.
func (a *Agent) followHardware(ctx context.Context, h route.Host) error {
	mac, stale := bridgeAddress(h, a.config)
	if !stale {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	a.log.Info("the uplink has another hardware address; the bridge takes it over", "address", mac)
	return a.ovs.FollowUplink(ctx, ovs.Uplink{Bridge: a.config.Bridge, Device: a.config.UplinkInterface})
}

// bridgeAddress is the hardware address that the gateway bridge must have, and whether it has another.
func bridgeAddress(h route.Host, c *world.Config) (mac string, stale bool) {
	uplink, is := h.Link(c.UplinkInterface)
	bridge, there := h.Link(c.Bridge)
	return uplink.MAC, is && there && uplink.MAC != "" && uplink.MAC != bridge.MAC
}
