package host

import (
	"log/slog"
	"net"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/planetest"
	"github.com/egret-net/egret/internal/plane/route"
	"github.com/egret-net/egret/internal/world"
)

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
	var sent []plan.Announcement
	f := Follower{Config: config, Log: slog.New(slog.DiscardHandler), Know: func([]netip.Addr) {}, Wake: func() {},
		Tell: func(all []plan.Announcement) { sent = append(sent, all...) }}
	macs := []string{"02:00:00:00:00:01", "02:00:00:00:00:02"}
	for _, mac := range macs {
		for _, name := range []string{config.UplinkInterface, config.Bridge} {
			setHardware(t, name, mac)
		}
		if err := f.ReadHost(t.Context(), route.Change{}, func(func(*world.World)) {}); err != nil {
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
