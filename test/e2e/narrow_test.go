package e2e

import (
	"context"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
)

// narrowMTU is of the last link to the far host: less than pods have, and enough for IPv6.
const narrowMTU = "1300"

// far is a host behind the fabric's router and a narrow link. It says that it takes larger segments than the link does,
// so that only the router's ICMP errors tell who sends to it.
type far struct {
	netns string
	ips   []netip.Addr
}

// farHost makes one; it goes when the test ends.
func (c *cluster) farHost(t *testing.T) far {
	t.Helper()
	f := far{netns: c.FabricNetns() + "-far"}
	sh := func(ctx context.Context, command string) {
		t.Helper()
		if out, err := exec.CommandContext(ctx, "ip", strings.Fields(command)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v\n%s", command, err, out)
		}
	}
	sh(t.Context(), "netns add "+f.netns)
	t.Cleanup(func() { sh(context.Background(), "netns del "+f.netns) })
	sh(t.Context(), "link add far0 mtu "+narrowMTU+" netns "+c.FabricNetns()+
		" type veth peer name eth0 mtu "+narrowMTU+" netns "+f.netns)
	router, host := "-n "+c.FabricNetns(), "-n "+f.netns
	sh(t.Context(), host+" link set lo up")
	sh(t.Context(), host+" link set eth0 up")
	sh(t.Context(), router+" link set far0 up")
	for _, own := range c.nodes[0].IPs {
		subnet, mss := netip.MustParsePrefix("192.0.2.0/24"), "1460"
		if own.Is6() {
			subnet, mss = netip.MustParsePrefix("2001:db8:2::/64"), "1440"
		}
		gateway := subnet.Addr().Next()
		ip := gateway.Next()
		nodad := map[bool]string{true: " nodad"}[own.Is6()]
		sh(t.Context(), router+" addr add "+netip.PrefixFrom(gateway, subnet.Bits()).String()+" dev far0"+nodad)
		sh(t.Context(), host+" addr add "+netip.PrefixFrom(ip, subnet.Bits()).String()+" dev eth0"+nodad)
		sh(t.Context(), host+" route add default via "+gateway.String()+" advmss "+mss)
		forward := map[bool]string{false: "net.ipv4.ip_forward", true: "net.ipv6.conf.all.forwarding"}[own.Is6()]
		sh(t.Context(), "netns exec "+c.FabricNetns()+" sysctl -qw "+forward+"=1")
		f.ips = append(f.ips, ip)
	}
	return f
}
