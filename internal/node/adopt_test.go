package node

import (
	"log/slog"
	"net"
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
	a.tellOwn = func([]plan.Announcement) {}
	a.addrs = targets.tellAddrs
	for i, address := range []string{"172.18.0.2/16", "172.18.0.3/16"} {
		addr, _ := netlink.ParseAddr(address)
		if err := netlink.AddrAdd(uplink, addr); err != nil {
			t.Fatal(err)
		}
		a.readHost(t.Context(), route.Change{}, a.loop.Do)
		own := targets.ownSources(Options{Node: "n1", Config: *config})[plan.DefaultNames().GatewayRouter("n1")]
		if len(own.Addrs) != i+1 || !slices.Contains(own.Addrs, netip.MustParsePrefix(address).Addr()) {
			t.Errorf("with %s: %v", address, own.Addrs)
		}
	}
}

// TestAnotherHardwareAddressIsTold: to read the host is enough for it.
func TestAnotherHardwareAddressIsTold(t *testing.T) {
	planetest.OwnNetns(t)
	config := compiletest.Config(world.SharedGateway)
	planetest.VethPair(t, config.UplinkInterface, "other")
	planetest.VethPair(t, config.Bridge, "another")
	bridge, err := netlink.LinkByName(config.Bridge)
	if err != nil {
		t.Fatal(err)
	}
	addr, _ := netlink.ParseAddr("172.18.0.2/16")
	if err := netlink.AddrAdd(bridge, addr); err != nil {
		t.Fatal(err)
	}
	a := newAgent("n1", config, all.ServedKinds(), slog.New(slog.DiscardHandler))
	a.addrs = func([]netip.Addr) {}
	var sent []plan.Announcement
	a.tellOwn = func(all []plan.Announcement) { sent = append(sent, all...) }
	macs := []string{"02:00:00:00:00:01", "02:00:00:00:00:02"}
	for _, mac := range macs {
		for _, name := range []string{config.UplinkInterface, config.Bridge} {
			setHardware(t, name, mac)
		}
		if err := a.readHost(t.Context(), route.Change{}, a.loop.Do); err != nil {
			t.Fatal(err)
		}
	}
	for i, mac := range macs {
		want := plan.Announcement{Dev: config.Bridge, IP: netip.MustParseAddr("172.18.0.2"), MAC: mac}
		if len(sent) != len(macs) || sent[i] != want {
			t.Errorf("announced %v, want %v and others", sent, want)
		}
	}
}

func setHardware(t *testing.T, name, mac string) {
	t.Helper()
	link, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	address, err := net.ParseMAC(mac)
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetHardwareAddr(link, address); err != nil {
		t.Fatal(err)
	}
}
