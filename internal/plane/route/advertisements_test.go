package route

import (
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/planetest"
)

// TestForwardingKeepsAdvertisements: a host that begins to forward IPv6 keeps the default route that a router on
// another link has advertised, and takes what that advertises from then on. A link that takes none goes on so, one of
// ours takes none, and one that comes later starts as on a host that does not forward.
func TestForwardingKeepsAdvertisements(t *testing.T) {
	planetest.OwnNetns(t)
	outside := behindVeth(t, "eth0", "router0")
	ip(t, "link add deaf0 type bridge")
	ip(t, "link add ours0 type bridge")
	setting := func(link, name, value string) {
		t.Helper()
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+link+"/"+name, []byte(value), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	reads := func(link, name, want string) {
		t.Helper()
		have, err := os.ReadFile("/proc/sys/net/ipv6/conf/" + link + "/" + name)
		if err != nil || strings.TrimSpace(string(have)) != want {
			t.Errorf("%s of %s is %q, want %q (%v)", name, link, have, want, err)
		}
	}
	setting("all", "forwarding", "0")
	setting("default", "forwarding", "0")
	for link, takes := range map[string]string{"eth0": "1", "ours0": "1", "deaf0": "0"} {
		setting(link, "accept_ra", takes)
	}
	takes := func(prefix string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			outside(func() { advertise(t, "router0", netip.MustParseAddr(prefix)) })
			if ip(t, "-6 route show "+prefix+"/64 dev eth0") != "" {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("prefix %s is not taken", prefix)
			}
		}
	}
	takes("2001:db8:1::")
	route := ip(t, "-6 route show default dev eth0")
	if !strings.Contains(route, "proto ra") {
		t.Fatalf("no default route: %s", route)
	}
	rows := &plan.Rows{Sysctls: map[plan.Sysctl]string{{Key: forwardAllKey}: "1",
		{Key: "net.ipv6.conf.ours0.accept_ra"}: "0"}}
	if err := apply(t, open(t), state(map[string]*plan.Rows{"own": rows})); err != nil {
		t.Fatal(err)
	}
	reads("all", "forwarding", "1")
	if now := ip(t, "-6 route show default dev eth0"); !strings.Contains(now, "proto ra") {
		t.Error("the default route is gone")
	}
	takes("2001:db8:2::")
	reads("deaf0", "accept_ra", "0")
	reads("ours0", "accept_ra", "0")
	ip(t, "link add late0 type bridge")
	reads("late0", "accept_ra", "1")
	reads("late0", "forwarding", "0")
}

// behindVeth moves the other end of a link into another network namespace, where it is a gateway, and returns how
// something is done there.
func behindVeth(t *testing.T, dev, peer string) (outside func(func())) {
	t.Helper()
	here, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	there, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := netns.Set(here); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { here.Close(); there.Close() })
	planetest.VethPair(t, dev, peer)
	link, err := netlink.LinkByName(peer)
	if err == nil {
		err = netlink.LinkSetNsFd(link, int(there))
	}
	if err != nil {
		t.Fatal(err)
	}
	outside = func(do func()) {
		if err := netns.Set(there); err != nil {
			t.Fatal(err)
		}
		do()
		if err := netns.Set(here); err != nil {
			t.Fatal(err)
		}
	}
	outside(func() {
		ip(t, "link set "+peer+" up")
		ip(t, "addr add 192.0.2.1/24 dev "+peer)
		ip(t, "addr add 2001:db8::1/64 dev "+peer+" nodad")
	})
	return outside
}

// advertise sends a router advertisement (RFC 4861 4.2) of this host as a router, with a prefix to make addresses of.
func advertise(t *testing.T, dev string, prefix netip.Addr) {
	t.Helper()
	link, err := net.InterfaceByName(dev)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for option, value := range map[int]int{unix.IPV6_MULTICAST_HOPS: 255, unix.IPV6_MULTICAST_IF: link.Index} {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, option, value); err != nil {
			t.Fatal(err)
		}
	}
	message := []byte{134, 0, 0, 0, 64, 0, 0x07, 0x08, 0, 0, 0, 0, 0, 0, 0, 0} // a lifetime of 1800 s
	message = append(message, 3, 4, 64, 0xc0, 0, 0, 0x0e, 0x10, 0, 0, 0x07, 0x08, 0, 0, 0, 0)
	message = append(message, prefix.AsSlice()...)
	to := &unix.SockaddrInet6{Addr: netip.MustParseAddr("ff02::1").As16(), ZoneId: uint32(link.Index)}
	_ = unix.Sendto(fd, message, 0, to) // the link may have no address yet: it is sent again
}
