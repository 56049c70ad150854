package world_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/world"
)

// TestHostNetworks: which networks of a host are in the way of the cluster's own ranges, and what is said of each.
func TestHostNetworks(t *testing.T) {
	for _, c := range []struct {
		name, uplink, link string
		want               []string
	}{
		{"a sandbox", "172.18.0.2/24", "172.19.1.2/24", nil},
		{"a sandbox, IPv6", "fc00:f853:ccd:e793::2/64", "fc00:f853:cce:1::2/64", nil},
		{"a container runtime's bridge", "192.0.2.2/24", "172.17.0.1/16", nil},
		{"a Service's address of NodeLocal DNSCache", "172.18.0.2/24", "10.96.0.10/32", nil},
		{"a former network plugin's bridge", "172.18.0.2/24", "10.244.0.1/24", []string{
			"network 10.244.0.0/24 of link eth1 and pod subnet 10.244.0.0/16 overlap, and who has an address in both " +
				"is not reached: use another network there, or build the cluster with another --cluster-subnets"}},
		{"wide networks", "10.1.2.3/8", "100.127.0.1/10", []string{
			"network 10.0.0.0/8 of the uplink and pod subnet 10.244.0.0/16 overlap",
			"network 10.0.0.0/8 of the uplink and service subnet 10.96.0.0/16 overlap, and who has an address in " +
				"both is not reached: use another network there, or build the cluster with another --service-subnets",
			"network 100.64.0.0/10 of link eth1 and join subnet 100.64.0.0/16 overlap, and who has an address in " +
				"both is not reached: use another network there",
			"network 100.64.0.0/10 of link eth1 and slot subnet 100.96.0.0/13 overlap",
			"network 100.64.0.0/10 of link eth1 and transit subnet 100.88.0.0/16 overlap",
		}},
		{"IPv6", "fd00:10:244:7::2/64", "fd98::1/64", []string{
			"network fd00:10:244:7::/64 of the uplink and pod subnet fd00:10:244::/48 overlap",
			"network fd98::/64 of link eth1 and join subnet fd98::/64 overlap"}},
	} {
		uplink := netip.MustParsePrefix(c.uplink)
		h := &world.Host{Primary: []netip.Prefix{uplink}, Uplink: []netip.Prefix{uplink},
			Links: []world.Link{{Name: "eth1", Addrs: []netip.Prefix{netip.MustParsePrefix(c.link)}}}}
		have := compiletest.Config(world.SharedGateway).OverlappedBy(h)
		if len(have) != len(c.want) {
			t.Errorf("%s: have %q, want %q", c.name, have, c.want)
			continue
		}
		for i, want := range c.want {
			if !strings.HasPrefix(have[i], want) {
				t.Errorf("%s: have %q, want %q", c.name, have[i], want)
			}
		}
	}
}
