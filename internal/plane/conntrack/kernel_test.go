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
		"add rule inet t c ip saddr 10.244.1.5 udp dport 53 snat ip to 172.18.0.50", "add rule inet t c ip saddr 10.244.1.5 snat ip to 172.18.0.2",
		"add rule inet t c ip saddr 10.244.1.7 ct mark set 0xe000003 snat ip to 172.18.0.50", "add rule inet t c ip saddr 10.244.1.8 snat ip to 172.18.0.77",
		"add rule inet t c ip saddr 10.244.1.6 snat ip to 172.18.0.50", "add rule inet t c ip6 saddr fd00:10:244::5 snat ip6 to fc00::2",
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
	before, err := datagrams(t)
	if err != nil || len(before) != 6 {
		t.Fatalf("%d connections, %v, want 6: %+v", len(before), err, before)
	}
	p := New(Kernel{}, Kernel{}, func() map[string]Own {
		return map[string]Own{plan.HostKernel: {Pods: own()["GR_n1"].Pods, Mark: 0xe000000, Mask: 0xff000000}}
	}, slog.New(slog.DiscardHandler))
	want := sources()
	for _, pod := range []string{"10.244.1.5", "10.244.1.6"} {
		key := plan.Source{Router: plan.HostKernel, Pod: addr(pod)}
		want.Sources.Put("eip", key, plan.SourcesTo{{IP: addr("172.18.0.50")}})
	}
	key := plan.Source{Router: plan.HostKernel, Pod: addr("fd00:10:244::5")}
	want.Sources.Put("eip", key, plan.SourcesTo{{IP: addr("fc00::50")}})
	shrink(t, p, want)
	after, err := datagrams(t)
	left := map[string]bool{}
	for _, e := range after {
		left[fmt.Sprint(e.Orig.Src, " as ", e.Source())] = true
	}
	if err != nil || len(after) != 3 || !left["10.244.1.5 as 172.18.0.50"] || !left["10.244.1.6 as 172.18.0.50"] || !left["10.244.1.8 as 172.18.0.77"] {
		t.Fatalf("left are %v, %v", left, err)
	}
}

// datagrams leaves out what the kernel itself says, to routers.
func datagrams(t *testing.T) ([]Entry, error) {
	all, err := Kernel{}.Dump(t.Context(), 0)
	return slices.DeleteFunc(all, func(e Entry) bool { return e.Proto != 17 }), err
}

// send is one datagram. The program's sockets are opened on this very thread, and so in its namespace.
func send(t *testing.T, from, to string) {
	t.Helper()
	c, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(from)), net.UDPAddrFromAddrPort(netip.MustParseAddrPort(to)))
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
