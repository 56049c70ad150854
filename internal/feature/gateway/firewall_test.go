package gateway_test

import (
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mdlayher/packet"
	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/gateway"
	"github.com/egret-net/egret/internal/plane/nft"
	"github.com/egret-net/egret/internal/plane/planetest"
	"github.com/egret-net/egret/internal/world"
)

// forwarder is a host with a link beside the bridge, and the packets of a pod that it forwards there.
type forwarder struct {
	*testing.T
	mac          net.HardwareAddr // of the management port
	pod, outside *packet.Conn     // the other ends of both links
}

func newForwarder(t *testing.T) forwarder {
	planetest.OwnNetns(t)
	planetest.VethPair(t, "ovn-k8s-mp0", "pod")
	planetest.VethPair(t, "eth1", "outside")
	for _, command := range []string{
		"ip addr add 10.244.1.2/24 dev ovn-k8s-mp0", "ip addr add fd00:10:244:1::2/64 dev ovn-k8s-mp0 nodad",
		"ip addr add 192.0.2.1/24 dev eth1", "ip addr add 2001:db8::1/64 dev eth1 nodad",
		"ip neigh add 192.0.2.7 lladdr 02:00:00:00:00:07 dev eth1",
		"ip neigh add 2001:db8::7 lladdr 02:00:00:00:00:07 dev eth1",
		"sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1",
	} {
		if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
	}
	p, err := nft.Open()
	if err != nil {
		t.Fatal(err)
	}
	w := compiletest.Small("n1", world.LocalGateway)
	w.Config.UserspaceOVS = false // no rule for the uplink, which is not there
	if err := p.Grow(t.Context(), compile.Full(w, []compile.Feature{gateway.Firewall{}})); err != nil {
		t.Fatal(err)
	}
	link, err := net.InterfaceByName("ovn-k8s-mp0")
	if err != nil {
		t.Fatal(err)
	}
	return forwarder{t, link.HardwareAddr, listen(t, "pod"), listen(t, "outside")}
}

func listen(t *testing.T, dev string) *packet.Conn {
	link, err := net.InterfaceByName(dev)
	if err != nil {
		t.Fatal(err)
	}
	c, err := packet.Listen(link, packet.Raw, unix.ETH_P_ALL, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// send has the pod send a packet.
func (f forwarder) send(from, to netip.Addr, proto byte, payload []byte) {
	f.Helper()
	frame := append(append([]byte{}, f.mac...), 2, 0, 0, 0, 0, 9, 0x08, 0x00)
	if from.Is6() {
		frame[12], frame[13] = 0x86, 0xdd
	}
	frame = append(frame, planetest.IPPacket(from, to, proto, payload)...)
	if _, err := f.pod.WriteTo(frame, &packet.Addr{HardwareAddr: f.mac}); err != nil {
		f.Fatal(err)
	}
}

// sources are those of what arrives outside for an address, up to its first packet of ICMP.
func (f forwarder) sources(to netip.Addr, icmp byte) (out []netip.Addr) {
	f.Helper()
	if err := f.outside.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		f.Fatal(err)
	}
	proto, src, size := 14+9, 14+12, 4
	if to.Is6() {
		proto, src, size = 14+6, 14+8, 16
	}
	for buffer := make([]byte, 2048); ; {
		n, _, err := f.outside.ReadFrom(buffer)
		if err != nil {
			f.Fatalf("no echo request arrives: %v; before %v", err, out)
		}
		if n < src+2*size || !strings.HasSuffix(string(buffer[:src+2*size]), string(to.AsSlice())) {
			continue
		}
		from, _ := netip.AddrFromSlice(buffer[src : src+size])
		if out = append(out, from); buffer[proto] == icmp {
			return out
		}
	}
}

// TestPodsRST: an RST of no connection does not leave with the pod's address; what begins a connection leaves with the
// link's.
func TestPodsRST(t *testing.T) {
	f := newForwarder(t)
	rst := []byte{0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 5 << 4, 1 << 2, 0, 0, 0, 0, 0, 0}
	for _, x := range []struct {
		pod, to, want string
		kind          icmp.Type
		proto         byte
	}{
		{"10.244.1.10", "192.0.2.7", "192.0.2.1", ipv4.ICMPTypeEcho, unix.IPPROTO_ICMP},
		{"fd00:10:244:1::10", "2001:db8::7", "2001:db8::1", ipv6.ICMPTypeEchoRequest, unix.IPPROTO_ICMPV6},
	} {
		pod, to := netip.MustParseAddr(x.pod), netip.MustParseAddr(x.to)
		echo, pseudo := icmp.Message{Type: x.kind, Body: &icmp.Echo{ID: 1}}, []byte(nil)
		if to.Is6() {
			pseudo = icmp.IPv6PseudoHeader(pod.AsSlice(), to.AsSlice())
		}
		text, err := echo.Marshal(pseudo)
		if err != nil {
			t.Fatal(err)
		}
		f.send(pod, to, unix.IPPROTO_TCP, rst)
		f.send(pod, to, x.proto, text)
		if have := f.sources(to, x.proto); len(have) != 1 || have[0].String() != x.want {
			t.Errorf("from %s arrive packets with the sources %v, want one with %s", pod, have, x.want)
		}
	}
}
