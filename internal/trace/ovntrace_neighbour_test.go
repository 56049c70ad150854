package trace_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/ovn/ovntest"
	"github.com/egret-net/egret/internal/world"
)

// TestNeighboursAreKnown: a gateway router learns a host outside from what it asks about an egress IP of another node,
// before the address moves here. And the holder answers those who ask without an address of their own (RFC 5227 2.1.1,
// RFC 4862 5.4.2), as a node does that is not sure what it holds.
func TestNeighboursAreKnown(t *testing.T) {
	c := newCluster(world.SharedGateway)
	c.serve([]string{"n2"}, true, []string{"n2"}, nil)
	a := &agreement{plans: c.plans(), zones: map[string]*ovntest.Env{}}
	a.start(t, "n1")
	a.start(t, "n2")
	ips, host := compiletest.EgressAddr(0), compiletest.EgressAddr(50)
	arp := func(sender string) string {
		return fmt.Sprintf(`eth.dst==ff:ff:ff:ff:ff:ff && arp.op==1 && arp.sha==02:00:00:00:00:64 && arp.spa==%s && arp.tha==00:00:00:00:00:00 && arp.tpa==%s`, sender, ips[0])
	}
	ns := func(sender, link string) string {
		low := ips[1].As16()
		group := fmt.Sprintf("%02x:%02x%02x", low[13], low[14], low[15])
		return fmt.Sprintf(`eth.dst==33:33:ff:%02x:%02x:%02x && ip6.src==%s && ip6.dst==ff02::1:ff%s && ip.ttl==255 && icmp6.type==135 && icmp6.code==0 && nd.target==%s%s`,
			low[13], low[14], low[15], sender, group, ips[1], link)
	}
	for _, x := range []struct{ name, node, asks, want string }{
		{"ARP", "n1", arp(host[0].String()), "put_arp"},
		{"ND", "n1", ns(host[1].String(), " && nd.sll==02:00:00:00:00:64"), "put_nd"},
		{"ARP probe", "n2", arp("0.0.0.0"), "arp.op = 2"},
		{"DAD", "n2", ns("::", ""), "nd_na"},
	} {
		packet := fmt.Sprintf(`inport=="breth0_%s" && eth.src==02:00:00:00:00:64 && %s`, x.node, x.asks)
		out, err := a.zones[x.node].TraceOnce(t.Context(), plan.DefaultNames().ExternalSwitch(x.node), packet)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out, x.want) {
			t.Errorf("%s: no %s on %s:\n%s", x.name, x.want, x.node, out)
		}
	}
}

// TestTheWayToPodsIsKnown: the first reply that a gateway router ever sends to a pod asks nobody for the way.
func TestTheWayToPodsIsKnown(t *testing.T) {
	a := &agreement{plans: newCluster(world.SharedGateway).plans(), zones: map[string]*ovntest.Env{}}
	a.start(t, "n2")
	for f, header := range map[world.Family]string{world.V4: "ip4.src==%s && ip4.dst==%s && ip.ttl==64",
		world.V6: "ip6.src==%s && ip6.dst==%s && ip.ttl==64"} {
		packet := fmt.Sprintf(`inport=="breth0_n2" && eth.src==02:00:00:00:00:64 && eth.dst==%s && `+header,
			compiletest.Host("n2").UplinkMAC, compiletest.EgressAddr(50)[f], compiletest.Pod(0, "n1").IPs[f])
		out, err := a.zones["n2"].TraceOnce(t.Context(), plan.DefaultNames().ExternalSwitch("n2"), packet)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out, `output to "tstor-n1"`) {
			t.Errorf("%s: no way to the pod:\n%s", f, out)
		}
		if strings.Contains(out, "get_arp(") || strings.Contains(out, "get_nd(") {
			t.Errorf("%s: the gateway router has to ask:\n%s", f, out)
		}
	}
}
