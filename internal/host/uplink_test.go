package host

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/route"
	"github.com/egret-net/egret/internal/world"
)

// TestBridgeAddress: the bridge has its uplink's hardware address, as far as both are there.
func TestBridgeAddress(t *testing.T) {
	const old, fresh = "02:00:00:00:00:01", "02:00:00:00:00:0a"
	bridge, uplink := route.Link{Name: "breth0", MAC: old}, route.Link{Name: "eth0", MAC: fresh}
	same := route.Link{Name: "eth0", MAC: old}
	for name, x := range map[string]struct {
		links []route.Link
		stale bool
	}{
		"another":   {[]route.Link{bridge, uplink}, true},
		"the same":  {[]route.Link{bridge, same}, false},
		"no bridge": {[]route.Link{uplink}, false},
		"no uplink": {[]route.Link{bridge}, false},
		"none":      {[]route.Link{bridge, {Name: "eth0"}}, false},
	} {
		mac, stale := bridgeAddress(route.Host{Links: x.links}, compiletest.Config(world.SharedGateway))
		if stale != x.stale || stale && mac != fresh {
			t.Errorf("%s: %s, stale %t", name, mac, stale)
		}
	}
}

// TestGivenAgain: an address of the bridge on its uplink is told from others there, and a default route from others.
func TestGivenAgain(t *testing.T) {
	addr := func(dev, prefix string) route.Address {
		return route.Address{Dev: dev, Prefix: netip.MustParsePrefix(prefix)}
	}
	links := []route.Link{{Name: "breth0"}, {Name: "eth0"}, {Name: "eth1"}}
	own, own6 := addr("breth0", "172.18.0.2/24"), addr("breth0", "fe80::2/64")
	viaOf := func(dev string, table int, dst string) []route.Route {
		return []route.Route{{Dev: dev, Table: table, Dst: netip.MustParsePrefix(dst)}}
	}
	for name, x := range map[string]struct {
		host route.Host
		want bool
	}{
		"nothing":                     {route.Host{Links: links, Addrs: []route.Address{own}}, false},
		"the bridge's":                {route.Host{Links: links, Addrs: []route.Address{own, addr("eth0", "172.18.0.2/16")}}, true},
		"a virtual one":               {route.Host{Links: links, Addrs: []route.Address{own, addr("eth0", "172.18.0.9/32")}}, false},
		"on another link":             {route.Host{Links: links, Addrs: []route.Address{own, addr("eth1", "172.18.0.2/24")}}, false},
		"link-local":                  {route.Host{Links: links, Addrs: []route.Address{own6, addr("eth0", "fe80::2/64")}}, false},
		"before there is a bridge":    {route.Host{Links: links[1:], Routes: viaOf("eth0", 254, "0.0.0.0/0")}, false},
		"a default route":             {route.Host{Links: links, Routes: viaOf("eth0", 254, "::/0")}, true},
		"of another link":             {route.Host{Links: links, Routes: viaOf("eth1", 254, "0.0.0.0/0")}, false},
		"of another table":            {route.Host{Links: links, Routes: viaOf("eth0", 100, "0.0.0.0/0")}, false},
		"a route to somewhere by one": {route.Host{Links: links, Routes: viaOf("eth0", 254, "fe80::/64")}, false},
	} {
		if have := givenAgain(x.host, compiletest.Config(world.SharedGateway)); have != x.want {
			t.Errorf("%s: %t", name, have)
		}
	}
}

// TestTellsNeighboursOfTheHardwareAddress: the bridge's addresses are the node's to announce, floating ones too, while
// the bridge has the uplink's hardware address. None is that has gone, and one that comes later is.
func TestTellsNeighboursOfTheHardwareAddress(t *testing.T) {
	const one, two = "02:00:00:00:00:01", "02:00:00:00:00:02"
	config := compiletest.Config(world.SharedGateway)
	addr := func(dev, prefix string) route.Address {
		return route.Address{Dev: dev, Prefix: netip.MustParsePrefix(prefix)}
	}
	node, floating := addr(config.Bridge, "172.18.0.2/16"), addr(config.Bridge, "172.18.0.200/32")
	six := addr(config.Bridge, "fd00:18::2/64")
	ours, tentative := addr(config.Bridge, "172.18.0.77/32"), addr(config.Bridge, "fd00:18::77/64")
	ours.Ours, tentative.Tentative = true, true
	others := []route.Address{addr(config.Bridge, "fe80::2/64"),
		addr(config.Bridge, "169.254.169.2/29"), addr("eth1", "172.19.0.2/16"), ours, tentative}
	for _, x := range []struct {
		name, uplink, bridge string
		own, want            []route.Address
	}{
		{"the bridge has no address yet", one, one, nil, nil},
		{"it has one of IPv4", one, one, []route.Address{node}, []route.Address{node}},
		{"and others", one, one, []route.Address{node, floating, six}, []route.Address{node, floating, six}},
		{"one floats away", one, one, []route.Address{node, six}, []route.Address{node, six}},
		{"the uplink has another, and the bridge not yet", two, one, []route.Address{node, six}, nil},
		{"it has it", two, two, []route.Address{node, six}, []route.Address{node, six}},
	} {
		var told, want []plan.Announcement
		f := Follower{Config: config, Tell: func(all []plan.Announcement) { told = append(told, all...) }}
		links := []route.Link{{Name: config.Bridge, MAC: x.bridge}, {Name: config.UplinkInterface, MAC: x.uplink}}
		f.tellNeighbours(route.Host{Links: links, Addrs: slices.Concat(x.own, others)})
		for _, p := range x.want {
			want = append(want, plan.Announcement{Dev: config.Bridge, IP: p.Prefix.Addr(), MAC: x.bridge})
		}
		if !slices.Equal(told, want) {
			t.Errorf("%s: announced %v, want %v", x.name, told, want)
		}
	}
}
