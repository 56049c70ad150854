package ovs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/plane/ovs/ovstest"
	"github.com/egret-net/egret/internal/plane/planetest"
)

var testUplink = Uplink{Bridge: "breth0", Device: "eth0", DatapathType: "netdev"}

// node is a network namespace with eth0, cabled to another one that holds the outside host; the calling test stays in
// it.
type node struct {
	t       *testing.T
	ovs     *ovstest.Switch
	db      *DB
	outside string // pid of a process in the outside namespace
}

func newNode(t *testing.T) *node {
	t.Helper()
	planetest.OwnNetns(t)
	n := &node{t: t}
	hold := exec.Command("unshare", "--net", "sleep", "600")
	hold.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(t, hold.Start())
	t.Cleanup(func() { hold.Process.Kill(); hold.Wait() })
	n.outside = fmt.Sprint(hold.Process.Pid)
	n.awaitNamespace()
	n.run("ip link set lo up")
	n.cable("0a:58:ac:12:00:02")
	n.ovs = ovstest.Start(t, ovstest.Netdev)
	db, err := Connect(t.Context(), n.ovs.DB(), slog.New(slog.DiscardHandler))
	must(t, err)
	t.Cleanup(db.Close)
	n.db = db
	return n
}

func (n *node) awaitNamespace() {
	self, _ := os.Readlink("/proc/thread-self/ns/net")
	for range 500 {
		other, err := os.Readlink("/proc/" + n.outside + "/ns/net")
		if cmd, _ := os.ReadFile("/proc/" + n.outside + "/comm"); err == nil && other != self &&
			string(cmd) == "sleep\n" {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
	n.t.Fatal("the outside namespace did not come up")
}

// cable gives eth0 as a boot does: up, with addresses and routes.
func (n *node) cable(mac string) {
	n.run("ip link add eth0 address " + mac + " type veth peer name ext0 netns " + n.outside)
	n.run("sysctl -qw net.ipv6.conf.eth0.accept_dad=0")
	out := "nsenter --net=/proc/" + n.outside + "/ns/net "
	n.run(out + "ip addr add 172.18.0.1/24 dev ext0")
	n.run(out + "ip link set ext0 up")
	n.run("ip link set eth0 up")
	n.run("ip addr add 172.18.0.2/24 dev eth0")
	n.run("ip addr add fc00:18::2/64 dev eth0 nodad")
	n.run("ip route add default via 172.18.0.1 dev eth0 metric 100")
	n.run("ip route add 192.0.2.0/24 dev eth0 metric 50")
	n.run("ip -6 route add default via fc00:18::1 dev eth0 metric 300")
}

func (n *node) run(command string) string {
	n.t.Helper()
	out, err := exec.Command("sh", "-c", command).CombinedOutput()
	if err != nil {
		n.t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

// flows switches as NORMAL does, and hides eth0's packets from the kernel, which sees them beside the userspace
// datapath.
func (n *node) flows(context.Context) error {
	n.ovs.Ofctl("add-flow", n.ovs.Mgmt("breth0"), "actions=NORMAL")
	n.run("nft 'add table netdev d; add chain netdev d i { type filter hook ingress device eth0 priority 0; policy " +
		"drop; }'")
	return nil
}

// wantMoved asserts that addresses and routes are on breth0, each once, and none is on eth0.
func (n *node) wantMoved() {
	n.t.Helper()
	for command, want := range map[string]string{
		"ip -o -4 addr show dev breth0":              "172.18.0.2/24",
		"ip -o -6 addr show dev breth0 scope global": "fc00:18::2/64",
		"ip -o addr show dev eth0 scope global":      "",
		"ip -4 route show default": "default via 172.18.0.1 dev " +
			"breth0 metric 100",
		"ip -4 route show 192.0.2.0/24": "192.0.2.0/24 dev breth0 scope " +
			"link metric 50",
		"ip -6 route show default": "default via fc00:18::1 dev " +
			"breth0 metric 300 pref medium",
		"ip -4 route show dev eth0":                                               "",
		"ip -6 route show dev eth0 | grep -v fe80 || :":                           "",
		"ip -o link show dev breth0 | grep -o 'state UP\\|UP,LOWER_UP' | head -1": "UP,LOWER_UP",
	} {
		have := strings.TrimSpace(n.run(command))
		if strings.Contains(command, "addr show") && want != "" {
			have = strings.Fields(have)[3]
		}
		if strings.Join(strings.Fields(have), " ") != want {
			n.t.Errorf("%s\n%q, want\n%q", command, have, want)
		}
	}
}

// mac is breth0's; /sys shows the devices of another namespace.
func (n *node) mac() string {
	n.t.Helper()
	return strings.Fields(n.run("ip -o link show dev breth0 | grep -o 'link/ether [^ ]*'"))[1]
}

// gap sends a datagram to the outside host every 2 ms while do runs, and returns the longest time without an answer.
func (n *node) gap(do func()) time.Duration {
	n.t.Helper()
	stop, longest := make(chan struct{}), make(chan time.Duration)
	ready := n.echo(stop, longest)
	<-ready
	do()
	time.Sleep(200 * time.Millisecond)
	close(stop)
	return <-longest
}

func (n *node) echo(stop chan struct{}, longest chan time.Duration) chan struct{} {
	server := n.listenOutside("172.18.0.1:7")
	client, err := net.DialUDP("udp", nil, server.LocalAddr().(*net.UDPAddr))
	must(n.t, err)
	go func() {
		b := make([]byte, 64)
		for {
			k, from, err := server.ReadFrom(b)
			if err != nil {
				return
			}
			server.WriteTo(b[:k], from)
		}
	}()
	ready := make(chan struct{})
	go measure(client, server, stop, ready, longest)
	return ready
}

func measure(client *net.UDPConn, server net.PacketConn, stop, ready chan struct{}, longest chan time.Duration) {
	defer server.Close()
	defer client.Close()
	var last time.Time
	var most time.Duration
	b := make([]byte, 64)
	for {
		select {
		case <-stop:
			longest <- max(most, time.Since(last))
			return
		default:
		}
		client.Write([]byte("x"))
		client.SetReadDeadline(time.Now().Add(2 * time.Millisecond))
		if _, err := client.Read(b); err != nil {
			continue
		}
		if last.IsZero() {
			close(ready)
		} else {
			most = max(most, time.Since(last))
		}
		last = time.Now()
		time.Sleep(2 * time.Millisecond)
	}
}

// listenOutside makes a socket in the outside namespace, without UDP checksums: the userspace datapath would pass on
// the half-done ones that veth leaves to hardware.
func (n *node) listenOutside(address string) net.PacketConn {
	n.t.Helper()
	type result struct {
		conn net.PacketConn
		err  error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread()
		ns, err := os.Open("/proc/" + n.outside + "/ns/net")
		if err == nil {
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
		}
		if err != nil {
			done <- result{nil, err}
			return
		}
		noCheck := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
			return c.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_NO_CHECK, 1) })
		}}
		conn, err := noCheck.ListenPacket(context.Background(), "udp4", address)
		done <- result{conn, err}
	}()
	r := <-done
	must(n.t, r.err)
	return r.conn
}

func TestMoveUplink(t *testing.T) {
	n := newNode(t)
	gap := n.gap(func() { must(t, n.db.MoveUplink(t.Context(), testUplink, n.flows)) })
	n.wantMoved()
	t.Logf("longest time without an answer: %v", gap)
	if gap > 500*time.Millisecond {
		t.Errorf("gap of %v, want < 0.5 s", gap)
	}
	if mac := n.mac(); mac != "0a:58:ac:12:00:02" {
		t.Errorf("breth0 has MAC %s, want the uplink's", mac)
	}
	gap = n.gap(func() {
		must(t, n.db.MoveUplink(t.Context(), testUplink, func(context.Context) error {
			return nil
		}))
	})
	n.wantMoved()
	t.Logf("again, nothing to move: %v", gap)
}

func TestMoveUplinkIsTakenUpAfterACrash(t *testing.T) {
	n := newNode(t)
	crash := errors.New("crash")
	if err := n.db.MoveUplink(t.Context(), testUplink, func(context.Context) error { return crash }); !errors.Is(err,
		crash) {
		t.Fatalf("got %v, want the failure of the base flows", err)
	}
	if out := n.run("ip -o -4 addr show dev eth0"); !strings.Contains(out, "172.18.0.2/24") {
		t.Fatalf("moved addresses to a bridge without flows: %s", out)
	}
	n.run("ip link set breth0 up && ip addr add 172.18.0.2/24 dev breth0") // died between addresses and routes
	must(t, n.db.MoveUplink(t.Context(), testUplink, n.flows))
	n.wantMoved()
	n.run("ip addr add 172.18.0.2/24 dev eth0") // died before the old addresses were gone
	must(t, n.db.MoveUplink(t.Context(), testUplink, func(context.Context) error { return nil }))
	n.wantMoved()
}

func TestMoveUplinkAfterReboot(t *testing.T) {
	n := newNode(t)
	must(t, n.db.MoveUplink(t.Context(), testUplink, n.flows))
	n.ovs.KillVSwitchd()
	n.run("ip link del eth0; ip link del breth0 2>/dev/null; nft delete table netdev d; true")
	n.cable("0a:58:ac:12:00:77")
	n.ovs.StartVSwitchd()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	must(t, n.db.MoveUplink(ctx, testUplink, n.flows))
	n.wantMoved()
	if mac := n.mac(); mac != "0a:58:ac:12:00:77" {
		t.Errorf("breth0 has MAC %s, want the new uplink's", mac)
	}
	if gap := n.gap(func() {}); gap > time.Second {
		t.Errorf("no answer for %v", gap)
	}
	if ports := strings.Fields(n.ovs.Vsctl("list-ports", "breth0")); !slices.Equal(ports, []string{"eth0"}) {
		t.Errorf("ports %v", ports)
	}
}

// want asserts that a command prints each of these texts, with one space between words.
func (n *node) want(command string, texts ...string) {
	n.t.Helper()
	have := strings.Join(strings.Fields(n.run(command)), " ")
	for _, text := range texts {
		if !strings.Contains(have, text) {
			n.t.Errorf("%s\n%q, want in it\n%q", command, have, text)
		}
	}
}

// TestMoveUplinkOfSeveralGateways: a route with several next hops goes to the bridge with all of them that were by the
// device.
func TestMoveUplinkOfSeveralGateways(t *testing.T) {
	n := newNode(t)
	n.run("ip link add eth1 type veth peer name far1 && ip link set eth1 up && ip link set far1 up")
	n.run("ip addr add 172.19.0.2/24 dev eth1")
	n.run("ip route replace default metric 100 nexthop via 172.18.0.1 dev eth0 weight 1 nexthop via 172.18.0.254 dev " +
		"eth0 weight 3 nexthop via 172.19.0.1 dev eth1")
	n.run("ip -6 route replace default metric 300 nexthop via fc00:18::1 dev eth0 nexthop via fc00:18::fe dev eth0")
	for range 2 { // the second time there is nothing to move
		must(t, n.db.MoveUplink(t.Context(), testUplink, n.flows))
		n.want("ip route show default", "metric 100", "nexthop via 172.18.0.1 dev breth0 weight 1",
			"nexthop via 172.18.0.254 dev breth0 weight 3", "nexthop via 172.19.0.1 dev eth1 weight 1")
		n.want("ip -6 route show default", "nexthop via fc00:18::1 dev breth0", "nexthop via fc00:18::fe dev breth0")
		if out := n.run("ip route; ip -6 route show default"); strings.Contains(out, "dev eth0") {
			t.Errorf("routes by eth0 are left:\n%s", out)
		}
	}
}

// TestMoveUplinkOfTheMoment: what was given for a time, which nobody renews on the bridge, is there for good, and what
// the kernel takes from router advertisements is renewed by these.
func TestMoveUplinkOfTheMoment(t *testing.T) {
	n := newNode(t)
	n.run("ip addr add 172.18.0.3/24 dev eth0 valid_lft 300 preferred_lft 200")
	n.run("ip addr add fc00:18::3/64 dev eth0 nodad valid_lft 300 preferred_lft 200")
	n.run("ip addr add fc00:18::4/64 dev eth0 nodad valid_lft 300 preferred_lft 0")
	n.run("sysctl -qw net.ipv6.conf.eth0.accept_ra=1")
	n.run("ip -6 route add default via fe80::1 dev eth0 proto ra metric 1024 expires 900")
	must(t, n.db.MoveUplink(t.Context(), testUplink, n.flows))
	n.want("ip addr show dev breth0 to 172.18.0.3", "valid_lft forever preferred_lft forever")
	n.want("ip addr show dev breth0 to fc00:18::3", "valid_lft forever preferred_lft forever")
	n.want("ip addr show dev breth0 to fc00:18::4", "deprecated", "valid_lft forever preferred_lft 0sec")
	n.want("ip -6 route show default proto ra", "via fe80::1 dev breth0 metric 1024 expires")
	n.want("cat /proc/sys/net/ipv6/conf/breth0/accept_ra", "2")
}

// TestMoveUplinkBeforeAdvertisement: a kernel that takes router advertisements by the device takes them by the bridge,
// though none has come when the uplink moves. One that forwards and so takes none by the device takes none there.
func TestMoveUplinkBeforeAdvertisement(t *testing.T) {
	for _, of := range []struct{ accepts, forwards, bridge string }{
		{"1", "0", "2"}, {"2", "1", "2"}, {"1", "1", "1"}, {"0", "0", "1"},
	} {
		t.Run(of.accepts+" "+of.forwards, func(t *testing.T) {
			n := newNode(t)
			n.run("sysctl -qw net.ipv6.conf.default.accept_ra=1 net.ipv6.conf.eth0.accept_ra=" + of.accepts +
				" net.ipv6.conf.eth0.forwarding=" + of.forwards)
			must(t, n.db.MoveUplink(t.Context(), testUplink, n.flows))
			n.want("cat /proc/sys/net/ipv6/conf/breth0/accept_ra", of.bridge)
		})
	}
}

// TestMoveUplinkOfAnotherManager: where the kernel takes no router advertisements, somebody else does, on the device:
// the bridge's route has no end, for nobody renews it there.
func TestMoveUplinkOfAnotherManager(t *testing.T) {
	n := newNode(t)
	n.run("sysctl -qw net.ipv6.conf.eth0.accept_ra=0")
	n.run("ip -6 route add default via fe80::1 dev eth0 proto ra metric 1024 expires 900")
	before := n.run("cat /proc/sys/net/ipv6/conf/default/accept_ra")
	must(t, n.db.MoveUplink(t.Context(), testUplink, n.flows))
	n.want("ip -6 route show default proto ra", "via fe80::1 dev breth0 metric 1024")
	if out := n.run("ip -6 route show default proto ra"); strings.Contains(out, "expires") {
		t.Errorf("the route ends: %s", out)
	}
	n.want("cat /proc/sys/net/ipv6/conf/breth0/accept_ra", strings.TrimSpace(before))
}

// TestMoveUplinkOfNetworkManager: a manager that has the kernel make no routes of its addresses makes them itself, of
// protocol kernel, with a metric (NetworkManager; systemd-networkd with RouteMetric=). They go to the bridge, or its
// gateways could not be reached. A prefix that is not on link stays so.
func TestMoveUplinkOfNetworkManager(t *testing.T) {
	n := newNode(t)
	n.run("ip addr flush dev eth0 scope global")
	n.run("ip addr add 172.18.0.2/24 dev eth0 noprefixroute")
	n.run("ip route add 172.18.0.0/24 dev eth0 proto kernel scope link src 172.18.0.2 metric 100")
	n.run("ip route add default via 172.18.0.1 dev eth0 proto dhcp src 172.18.0.2 metric 100")
	n.run("ip addr add fc00:18::2/64 dev eth0 nodad noprefixroute")
	n.run("ip -6 route add fc00:18::/64 dev eth0 proto kernel metric 100")
	n.run("ip addr add fc00:19::2/64 dev eth0 nodad noprefixroute")
	n.run("ip -6 route add default via fc00:18::1 dev eth0 proto ra metric 100")
	n.run("ip -6 route add fe80::/64 dev eth0 proto kernel metric 1024")
	move := func() error { return n.db.MoveUplink(t.Context(), testUplink, n.flows) }
	follow := func() error {
		n.run("ip link set eth0 address 0a:58:ac:12:00:99")
		return n.db.FollowUplink(t.Context(), testUplink)
	}
	for _, do := range []func() error{move, move, follow} { // the second time there is nothing to move
		must(t, do())
		n.want("ip route show 172.18.0.0/24", "172.18.0.0/24 dev breth0 proto kernel scope link src 172.18.0.2 metric 100")
		n.want("ip route show default", "default via 172.18.0.1 dev breth0 proto dhcp src 172.18.0.2 metric 100")
		n.want("ip -6 route show fc00:18::/64", "fc00:18::/64 dev breth0 proto kernel metric 100")
		n.want("ip -6 route show default", "via fc00:18::1 dev breth0 proto ra metric 100")
		n.want("ip -6 route show fe80::/64 dev eth0 metric 1024", "fe80::/64")
		if out := n.run("ip -6 route show fc00:19::/64"); out != "" {
			t.Errorf("what is not on link is: %s", out)
		}
		if out := n.run("ip route; ip -6 route | grep -v fe80::/64"); strings.Contains(out, "dev eth0") {
			t.Errorf("routes by eth0 are left:\n%s", out)
		}
	}
	if gap := n.gap(func() {}); gap > time.Second {
		t.Errorf("no answer for %v", gap)
	}
}

// TestUplinkIsGivenItsAddressesAgain: as a DHCP client does that renews a lease on the device. An address that the
// bridge has not stays there.
func TestUplinkIsGivenItsAddressesAgain(t *testing.T) {
	n := newNode(t)
	must(t, n.db.MoveUplink(t.Context(), testUplink, n.flows))
	gap := n.gap(func() {
		n.run("ip addr add 172.18.0.2/24 dev eth0 valid_lft 300 preferred_lft 300")
		n.run("ip addr add fc00:18::2/64 dev eth0 nodad")
		n.run("ip route replace default via 172.18.0.1 dev eth0 metric 100")
		must(t, n.db.FollowUplink(t.Context(), testUplink))
	})
	n.wantMoved()
	if gap > time.Second {
		t.Errorf("no answer for %v", gap)
	}
	n.run("ip addr add 172.18.0.9/32 dev eth0")
	must(t, n.db.FollowUplink(t.Context(), testUplink))
	n.want("ip addr show dev eth0", "172.18.0.9/32")
}

// TestUplinkTakesAnotherHardwareAddress: the bridge's own port has the address that it is given while it runs, and its
// addresses and routes stay.
func TestUplinkTakesAnotherHardwareAddress(t *testing.T) {
	const other = "0a:58:ac:12:00:99"
	n := newNode(t)
	must(t, n.db.MoveUplink(t.Context(), testUplink, n.flows))
	n.run("ip link set eth0 address " + other)
	must(t, n.db.FollowUplink(t.Context(), testUplink))
	if set := strings.TrimSpace(n.ovs.Vsctl("get", "bridge", "breth0", "other_config:hwaddr")); set != `"`+other+`"` {
		t.Errorf("hwaddr is %s", set)
	}
	if mac := n.mac(); mac != other {
		t.Errorf("breth0 has MAC %s, want %s", mac, other)
	}
	n.wantMoved()
	if mode := strings.TrimSpace(n.ovs.Vsctl("get-fail-mode", "breth0")); mode != "secure" {
		t.Errorf("fail mode %s", mode)
	}
	if gap := n.gap(func() {}); gap > time.Second {
		t.Errorf("no answer for %v", gap)
	}
}

// TestRestoresWhatALinkLosesWhenDown: an IPv4 address that is gone was taken away by somebody, and is not put back, nor
// are its routes; all others are. An IPv6 address that floats is asked about before it is used, and one that keepalived
// has is left to it.
func TestRestoresWhatALinkLosesWhenDown(t *testing.T) {
	n := newNode(t)
	must(t, n.db.MoveUplink(t.Context(), testUplink, n.flows))
	const floating4, floating6, managed6 = "172.18.0.58/32", "fc00:f853:ccd:e793::58/128", "fc00:f853:ccd:e793::59/128"
	const route = "198.51.100.0/24 dev breth0 "
	n.run("ip addr add " + floating4 + " dev breth0; ip addr add " + floating6 + " dev breth0 nodad; ip addr add " +
		managed6 + " dev breth0 nodad preferred_lft 0; ip route add " + route + "src 172.18.0.58")
	local, err := netlink.LinkByName("breth0")
	must(t, err)
	addrs, err := globalAddrs(local)
	must(t, err)
	routes, err := mainRoutes(local)
	must(t, err)
	n.run("ip addr del " + floating4 + " dev breth0; ip -6 addr flush dev breth0 scope global; ip route del default")
	must(t, restoreLink(local, addrs, routes))
	n.want("ip -4 route show default", "via 172.18.0.1 dev breth0")
	n.want("ip -6 route show default", "via fc00:18::1 dev breth0")
	n.want("ip addr show dev breth0 -tentative", "fc00:18::2/64")
	n.want("ip addr show dev breth0 tentative", floating6)
	for _, question := range []string{"ip addr show dev breth0", "ip route show"} {
		if out := n.run(question); strings.Contains(out, "172.18.0.58") || strings.Contains(out, "198.51.100.0") ||
			strings.Contains(out, managed6) {
			t.Errorf("%s: %s", question, out)
		}
	}
}

// TestMoveUplinkOfALongName: device and bridge have names of 15 characters, the most there are, one with a dot as VLANs
// have it.
func TestMoveUplinkOfALongName(t *testing.T) {
	const device, bridge = "enp129s0f0.1000", "brenp129s0f0np0"
	n := newNode(t)
	n.run("ip link set eth0 down && ip link set eth0 name " + device + " && ip link set " + device + " up")
	n.run("ip route add default via 172.18.0.1 dev " + device)
	must(t, n.db.MoveUplink(t.Context(), Uplink{Bridge: bridge, Device: device, DatapathType: "netdev"},
		func(context.Context) error {
			n.ovs.Ofctl("add-flow", n.ovs.Mgmt(bridge), "actions=NORMAL")
			n.run("nft 'add table netdev d; add chain netdev d i { type filter hook ingress device \"" + device +
				"\" priority 0; policy drop; }'")
			return nil
		}))
	n.want("ip addr show dev "+bridge, "inet 172.18.0.2/24")
	n.want("ip route show default", "via 172.18.0.1 dev "+bridge)
	if _, is := n.db.OFPort(device); !is {
		t.Errorf("%s is no port of %s", device, bridge)
	}
	if gap := n.gap(func() {}); gap > time.Second {
		t.Errorf("no answer for %v", gap)
	}
}
