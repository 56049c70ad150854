package conntrack

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/planetest"
)

// TestKernelConnections: of a kernel's connections exactly those with a former source end.
func TestKernelConnections(t *testing.T) {
	planetest.OwnNetns(t)
	run(t, "ip link set lo up")
	run(t, "ip link add d0 type bridge")
	run(t, "ip link set d0 up")
	run(t, "ip addr add 10.244.1.5/24 dev d0")
	run(t, "ip addr add 10.244.1.6/24 dev d0")
	run(t, "ip addr add 10.244.1.7/24 dev d0")
	run(t, "ip addr add 10.244.1.8/24 dev d0")
	run(t, "ip addr add fd00:10:244::5/64 dev d0 nodad")
	for _, rule := range []string{
		"add table inet t", "add chain inet t c { type nat hook postrouting priority 100; }",
		"add rule inet t c ip saddr 10.244.1.5 udp dport 53 snat ip to 172.18.0.50",
		"add rule inet t c ip saddr 10.244.1.5 snat ip to 172.18.0.2",
		"add rule inet t c ip saddr 10.244.1.7 ct mark set 0xe000003 snat ip to 172.18.0.50",
		"add rule inet t c ip saddr 10.244.1.8 snat ip to 172.18.0.77",
		"add rule inet t c ip saddr 10.244.1.6 snat ip to 172.18.0.50",
		"add rule inet t c ip6 saddr fd00:10:244::5 snat ip6 to fc00::2",
	} {
		run(t, "nft "+rule)
	}
	run(t, "ip route add default dev d0")
	run(t, "ip -6 route add default dev d0")
	run(t, "ip neigh add 8.8.8.8 lladdr 02:00:00:00:00:01 dev d0")
	run(t, "ip neigh add 2001:db8::1 lladdr 02:00:00:00:00:01 dev d0")
	send(t, "10.244.1.5:1001", "8.8.8.8:53")
	send(t, "10.244.1.5:1002", "8.8.8.8:54")
	send(t, "10.244.1.6:1003", "8.8.8.8:53")
	send(t, "10.244.1.7:1005", "8.8.8.8:53") // of a pod that is no longer selected
	send(t, "10.244.1.8:1006", "8.8.8.8:53") // translated by somebody else
	send(t, "[fd00:10:244::5]:1004", "[2001:db8::1]:53")
	ping(t, "10.244.1.5", "8.8.8.8", 7)
	ping(t, "10.244.1.8", "8.8.8.8", 7)
	before, err := said(t)
	if err != nil || len(before) != 8 {
		t.Fatalf("%d connections, %v, want 8: %+v", len(before), err, before)
	}
	p := New(t.Context(), Kernel{}, Kernel{}, func() map[string]Own {
		return map[string]Own{plan.HostKernel: {Pods: own()["GR_n1"].Pods, Mark: 0xe000000, Mask: 0xff000000}}
	}, slog.New(slog.DiscardHandler))
	want := sources()
	for _, pod := range []string{"10.244.1.5", "10.244.1.6"} {
		key := plan.Source{Router: plan.HostKernel, Pod: addr(pod)}
		want.Sources.Put(planetest.Owner("eip"), key, plan.SourcesTo{{To: plan.Everywhere, IP: addr("172.18.0.50")}})
	}
	key := plan.Source{Router: plan.HostKernel, Pod: addr("fd00:10:244::5")}
	want.Sources.Put(planetest.Owner("eip"), key, plan.SourcesTo{{To: plan.Everywhere, IP: addr("fc00::50")}})
	shrink(t, p, want)
	after, err := said(t)
	var left []string
	for _, e := range after {
		left = append(left, fmt.Sprint(e.Proto, " ", e.Orig.Src, " as ", e.Source()))
	}
	slices.Sort(left)
	if diff := cmp.Diff([]string{"1 10.244.1.8 as 172.18.0.77", "17 10.244.1.5 as 172.18.0.50",
		"17 10.244.1.6 as 172.18.0.50", "17 10.244.1.8 as 172.18.0.77"}, left); err != nil || diff != "" {
		t.Fatalf("%v; left are (-want +have)\n%s", err, diff)
	}
}

// TestKernelFlushIsQuick: to end a connection takes no look at all the others, however many there are; else thousands
// go on for seconds after their egress IP is gone.
func TestKernelFlushIsQuick(t *testing.T) {
	planetest.OwnNetns(t)
	var all []Entry
	for i := range 4000 {
		v4, v6 := conn("10.244.1.5", "8.8.8.8", "172.18.0.50"), conn("fd00:10:244::5", "2001:db8::1", "fc00::50")
		for _, e := range []*Entry{&v4, &v6} {
			e.Orig.SrcPort, e.Reply.DstPort, e.Zone = uint16(10000+i), uint16(10000+i), hostZone
			track(t, *e)
		}
		all = append(all, v4, v6)
	}
	begin := time.Now()
	for range 10 {
		if have, err := (Kernel{}).Dump(t.Context(), hostZone); err != nil || len(have) != len(all) {
			t.Fatalf("%d entries, %v, want %d", len(have), err, len(all))
		}
	}
	looks := time.Since(begin)
	begin = time.Now()
	for _, e := range all[:200] {
		if err := (Kernel{}).Flush(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("10 looks take %s, 200 ends %s", looks, time.Since(begin))
	if ends := time.Since(begin); ends > looks {
		t.Errorf("to end 200 connections took %s, longer than 10 looks at %d, %s", ends, len(all), looks)
	}
	have, err := Kernel{}.Dump(t.Context(), hostZone)
	if err != nil || len(have) != len(all)-200 {
		t.Errorf("%d entries are left, %v, want %d", len(have), err, len(all)-200)
	}
	if err := (Kernel{}).Flush(t.Context(), all[0]); err != nil {
		t.Errorf("one that has ended: %v", err)
	}
}

// TestKernelPatterns: the kernel lists what is like a pattern, and ends one echo of several between two addresses.
func TestKernelPatterns(t *testing.T) {
	planetest.OwnNetns(t)
	for i, proto := range []uint8{6, protoUDP, protoSCTP} {
		for _, ends := range [][2]string{{"10.244.1.5", "8.8.8.8"}, {"fd00:10:244::5", "2001:db8::1"},
			{"10.244.1.6", "8.8.4.4"}} {
			e := conn(ends[0], ends[1], ends[0])
			e.Proto, e.Orig.SrcPort, e.Reply.DstPort = proto, uint16(1000+i), uint16(1000+i)
			track(t, e)
		}
	}
	count := func(want int, like ...Entry) []Entry {
		t.Helper()
		have, err := Kernel{}.Dump(t.Context(), hostZone, like...)
		if err != nil || len(have) != want {
			t.Errorf("%+v: %v, %d entries, want %d: %+v", like, err, len(have), want, have)
		}
		return have
	}
	pod := Entry{Orig: Tuple{Src: addr("10.244.1.5")}}
	count(9)
	count(3, pod)
	count(3, Entry{Orig: Tuple{Src: addr("fd00:10:244::5")}})
	count(3, Entry{Proto: protoUDP})
	count(1, Entry{Proto: protoSCTP, Orig: Tuple{Dst: addr("8.8.8.8"), DstPort: 53}})
	count(0, Entry{Proto: protoSCTP, Orig: Tuple{Dst: addr("8.8.8.8"), DstPort: 54}})
	count(6, pod, Entry{Orig: Tuple{Src: addr("fd00:10:244::5")}})
	for _, e := range count(3, pod) {
		if e.Orig != (Tuple{Src: addr("10.244.1.5"), Dst: addr("8.8.8.8"), SrcPort: e.Orig.SrcPort, DstPort: 53}) ||
			e.Reply.DstPort != e.Orig.SrcPort {
			t.Errorf("read %+v", e)
		}
	}
	for _, command := range []string{"ip link set lo up", "ip link add d0 type bridge", "ip link set d0 up",
		"ip addr add 10.244.1.7/24 dev d0", "ip route add default dev d0", "nft add table inet t",
		"nft add chain inet t c { type nat hook postrouting priority 100; }",
		"nft add rule inet t c ip saddr 10.244.1.7 snat ip to 172.18.0.50",
		"ip neigh add 8.8.8.8 lladdr 02:00:00:00:00:01 dev d0"} {
		run(t, command)
	}
	ping(t, "10.244.1.7", "8.8.8.8", 7)
	ping(t, "10.244.1.7", "8.8.8.8", 8)
	echo := Entry{Proto: protoICMP, Orig: Tuple{Src: addr("10.244.1.7")}}
	echoes := count(2, echo)
	if err := (Kernel{}).Flush(t.Context(), echoes[0]); err != nil {
		t.Error(err)
	}
	if left := count(1, echo); left[0].Orig.ICMPID != echoes[1].Orig.ICMPID {
		t.Errorf("left is %+v, ended was %+v", left, echoes[0])
	}
}

// track has the kernel track a connection.
func track(t testing.TB, e Entry) {
	t.Helper()
	tuple := func(d Tuple) netlink.IPTuple {
		return netlink.IPTuple{SrcIP: d.Src.AsSlice(), DstIP: d.Dst.AsSlice(), SrcPort: d.SrcPort, DstPort: d.DstPort,
			Protocol: e.Proto}
	}
	family := familyOf(e.Orig.Src)
	if err := netlink.ConntrackCreate(netlink.ConntrackTable, family, &netlink.ConntrackFlow{FamilyType: uint8(family),
		TimeOut: 6000, Forward: tuple(e.Orig), Reverse: tuple(e.Reply)}); err != nil {
		t.Fatal(err)
	}
}

// said leaves out what the kernel itself says, to routers.
func said(t *testing.T) ([]Entry, error) {
	all, err := Kernel{}.Dump(t.Context(), 0)
	return slices.DeleteFunc(all, func(e Entry) bool { return e.Proto != protoUDP && e.Proto != protoICMP }), err
}

// ping is one ICMP echo request, by a socket like send's.
func ping(t *testing.T, from, to string, id int) {
	t.Helper()
	c, err := icmp.ListenPacket("ip4:icmp", from)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m := icmp.Message{Type: ipv4.ICMPTypeEcho, Body: &icmp.Echo{ID: id}}
	text, err := m.Marshal(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.WriteTo(text, &net.IPAddr{IP: net.ParseIP(to)}); err != nil {
		t.Fatal(err)
	}
}

// send is one datagram. The program's sockets are opened on this very thread, and so in its namespace.
func send(t *testing.T, from, to string) {
	t.Helper()
	c, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(from)),
		net.UDPAddrFromAddrPort(netip.MustParseAddrPort(to)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, command string) {
	t.Helper()
	words := strings.Fields(command)
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
}
