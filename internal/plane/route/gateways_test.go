package route

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/egret-net/egret/internal/plane/planetest"
)

// TestGatewaysAreAsked: a gateway that gets another hardware address and does not tell is known by it soon, over both
// families, though this host sends it nothing.
func TestGatewaysAreAsked(t *testing.T) {
	planetest.OwnNetns(t)
	gateways := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}
	outside := behindVeth(t, "eth0", "gw0")
	ip(t, "addr add 192.0.2.2/24 dev eth0")
	ip(t, "addr add 2001:db8::2/64 dev eth0 nodad")
	for _, family := range []string{"ipv4", "ipv6"} { // three requests in 0.3 s, not 3 s
		path := "/proc/sys/net/" + family + "/neigh/eth0/retrans_time_ms"
		if err := os.WriteFile(path, []byte("100"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, mac := range []string{"02:00:00:00:00:01", "02:00:00:00:00:02"} {
		outside(func() { ip(t, "link set gw0 address "+mac) })
		knows(t, gateways, mac)
	}
}

// knows waits until the kernel knows all gateways by a hardware address, and asks meanwhile.
func knows(t *testing.T, gateways []netip.Addr, mac string) {
	t.Helper()
	link, err := net.InterfaceByName("eth0")
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if err := askGateways("eth0", gateways, true); err != nil {
			t.Fatal(err)
		}
		entries, err := netlink.NeighList(link.Index, netlink.FAMILY_ALL)
		if err != nil {
			t.Fatal(err)
		}
		known := 0
		for _, e := range entries {
			a, _ := netip.AddrFromSlice(e.IP)
			if e.HardwareAddr.String() == mac && slices.Contains(gateways, a.Unmap()) {
				known++
			}
		}
		if known == len(gateways) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("gateways are not known by %s: %+v", mac, entries)
		}
	}
}
