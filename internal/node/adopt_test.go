package node

import (
	"log/slog"
	"net/netip"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/planetest"
	"github.com/egret-net/egret/internal/plane/route"
	"github.com/egret-net/egret/internal/world"
)

// TestOwnSourcesFollowTheHost: what pods leave with without an egress IP is what was last read of this host; to judge
// connections, nothing is read.
func TestOwnSourcesFollowTheHost(t *testing.T) {
	planetest.OwnNetns(t)
	config := compiletest.Config(world.SharedGateway)
	planetest.VethPair(t, config.UplinkInterface, "other")
	uplink, err := netlink.LinkByName(config.UplinkInterface)
	if err != nil {
		t.Fatal(err)
	}
	var targets targets
	a := newAgent("n1", config, all.ServedKinds(), slog.New(slog.DiscardHandler))
	a.host.Tell, a.host.Know = func([]plan.Announcement) {}, targets.tellAddrs
	for i, address := range []string{"172.18.0.2/16", "172.18.0.3/16"} {
		addr, _ := netlink.ParseAddr(address)
		if err := netlink.AddrAdd(uplink, addr); err != nil {
			t.Fatal(err)
		}
		a.host.ReadHost(t.Context(), route.Change{}, a.loop.Do)
		own := targets.ownSources(Options{Node: "n1", Config: *config})[plan.DefaultNames().GatewayRouter("n1")]
		if len(own.Addrs) != i+1 || !slices.Contains(own.Addrs, netip.MustParsePrefix(address).Addr()) {
			t.Errorf("with %s: %v", address, own.Addrs)
		}
	}
}
