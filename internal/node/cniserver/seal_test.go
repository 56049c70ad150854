package cniserver_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/node/cniserver/podlink"
)

// TestNodeDoesNotHearPods: a pod that sends to the hardware address of the node's end of its link does not reach the
// node's own stack, neither after ADD nor after the start of an agent of which a former one made the link. The settings
// are taken away in between, which shows that what is sent would arrive.
func TestNodeDoesNotHearPods(t *testing.T) {
	for subnet, node := range map[string]string{"10.244.1.0/24": "192.0.2.1", "fd00::/64": "2001:db8::1"} {
		t.Run(node, func(t *testing.T) {
			l := newLab(t, subnet)
			heard := hears(t, netip.MustParseAddr(node))
			p := l.pod("a", "c1")
			l.mustAdd(p)
			p.sendPastTheSwitch(t, heard.at, "added")
			open(t, podlink.HostName("c1"))
			p.untilHeard(t, heard, "open")
			if err := l.server.Seal(t.Context()); err != nil {
				t.Fatal(err)
			}
			p.sendPastTheSwitch(t, heard.at, "sealed")
			open(t, podlink.HostName("c1"))
			p.untilHeard(t, heard, "open again")
		})
	}
}

// listener is a socket of the node.
type listener struct {
	at   netip.AddrPort
	conn *net.UDPConn
}

// hears has the node have an address, and listen there.
func hears(t *testing.T, ip netip.Addr) listener {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	a := &netlink.Addr{IPNet: &net.IPNet{IP: ip.AsSlice(), Mask: net.CIDRMask(ip.BitLen(), ip.BitLen())}}
	if ip.Is6() {
		a.Flags = unix.IFA_F_NODAD
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		t.Fatal(err)
	}
	if err := netlink.AddrReplace(lo, a); err != nil {
		t.Fatal(err)
	}
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, 0)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return listener{conn.LocalAddr().(*net.UDPAddr).AddrPort(), conn}
}

// open has the node's stack take in what a link carries, as it did by default.
func open(t *testing.T, link string) {
	t.Helper()
	for _, path := range []string{"ipv6/conf/" + link + "/disable_ipv6", "ipv4/conf/" + link + "/rp_filter",
		"ipv4/conf/all/rp_filter"} {
		if err := os.WriteFile("/proc/sys/net/"+path, []byte("0"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// sendPastTheSwitch sends a datagram to the node's end of the pod's link: the pod's gateways have its address.
func (p pod) sendPastTheSwitch(t *testing.T, to netip.AddrPort, text string) {
	t.Helper()
	end, err := netlink.LinkByName(podlink.HostName(p.conf.ContainerID))
	if err != nil {
		t.Fatal(err)
	}
	err = p.netns.Do(func(ns.NetNS) error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		gateway := map[bool]string{true: "fd00::1", false: "10.244.1.1"}[to.Addr().Is6()]
		err = netlink.NeighSet(&netlink.Neigh{LinkIndex: link.Attrs().Index, State: netlink.NUD_PERMANENT,
			IP: net.ParseIP(gateway), HardwareAddr: end.Attrs().HardwareAddr})
		if err != nil {
			return fmt.Errorf("set the gateway's hardware address: %w", err)
		}
		conn, err := net.Dial("udp", to.String())
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write([]byte(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// untilHeard sends a datagram again and again: it is the first one that the node hears.
func (p pod) untilHeard(t *testing.T, l listener, text string) {
	t.Helper()
	packet := make([]byte, 100)
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		p.sendPastTheSwitch(t, l.at, text)
		if err := l.conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		n, err := l.conn.Read(packet)
		if err != nil {
			continue
		}
		if have := string(packet[:n]); have != text {
			t.Errorf("the node heard %q of the pod, before %q", have, text)
		}
		for ; err == nil; _, err = l.conn.Read(packet) { // those sent meanwhile
			_ = l.conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		}
		return
	}
	t.Fatalf("the node hears nothing of the pod, so this test shows nothing")
}
