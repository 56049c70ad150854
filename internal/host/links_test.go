package host

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/plane/route"
	"github.com/egret-net/egret/internal/world"
)

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// found is a host with an ordinary second link, one in a VRF, and much that is none.
func found() route.Host {
	const main = 254
	link := func(name string, index int, kind, master string, table int) route.Link {
		return route.Link{Name: name, Index: index, MAC: fmt.Sprint("02:00:00:00:00:0", index), Up: true, MTU: 1500,
			Kind: kind, Master: master, Carrier: true, Table: table, Forwards: true}
	}
	return route.Host{
		Links: []route.Link{
			link("blue", 10, "vrf", "", 10), link("bond0", 6, "bond", "", main), link("br-int", 8, "tun", "", main),
			link("breth0", 2, "tun", "", main), link("eth0", 1, "device", "", main), link("eth1", 3, "device", "",
				main),
			link("eth2", 4, "device", "blue", 10), link("eth3", 5, "device", "bond0", main), {Name: "lo", Index: 7,
				Up: true, Carrier: true, Table: main}, link("ovn-k8s-mp0", 9, "tun", "", main),
		},
		Addrs: []route.Address{
			{Dev: "blue", Prefix: prefix("172.20.9.9/24")}, {Dev: "bond0", Prefix: prefix("172.22.0.2/24")},
			{Dev: "breth0", Prefix: prefix("172.18.0.2/24")},
			{Dev: "eth1", Prefix: prefix("172.19.1.2/24")}, {Dev: "eth1", Prefix: prefix("172.19.1.50/32"), Ours: true},
			{Dev: "eth1", Prefix: prefix("172.19.1.60/32")},
			{Dev: "eth1", Prefix: prefix("fc00:1::2/64")}, {Dev: "eth1", Prefix: prefix("fe80::2/64")},
			{Dev: "eth2", Prefix: prefix("172.20.0.2/24")},
			{Dev: "eth3", Prefix: prefix("172.21.0.2/24")}, {Dev: "lo", Prefix: prefix("172.23.0.2/24")},
			{Dev: "ovn-k8s-mp0", Prefix: prefix("10.244.1.2/24"), Ours: true},
		},
		Routes: []route.Route{
			{Table: 10, Dst: prefix("0.0.0.0/0"), Via: netip.MustParseAddr("172.20.0.1"), Dev: "eth2"},
			{Table: 10, Dst: prefix("172.20.0.0/24"), Dev: "eth2"},
			{Table: main, Dst: prefix("0.0.0.0/0"), Via: netip.MustParseAddr("172.18.0.1"), Dev: "breth0"},
			{Table: main, Dst: prefix("10.9.0.0/16"), Via: netip.MustParseAddr("172.19.1.8"), Dev: "eth1", Metric: 10},
			{Table: main, Dst: prefix("10.9.0.0/16"), Via: netip.MustParseAddr("172.19.1.9"), Dev: "eth1", Metric: 20},
			{Table: main, Dst: prefix("10.10.0.0/16"), Via: netip.MustParseAddr("203.0.113.1"), Dev: "eth1",
				OnLink: true},
			{Table: main, Dst: prefix("172.19.1.0/24"), Dev: "eth1"}, {Table: main, Dst: prefix("fe80::/64"),
				Dev: "eth1"},
			{Table: 1003, Dst: prefix("172.19.1.0/24"), Dev: "eth1", Ours: true},
		},
	}
}

func facts(t *testing.T, change func(*route.Host)) *world.Host {
	t.Helper()
	h := found()
	if change != nil {
		change(&h)
	}
	f := Facts(h, compiletest.Config(world.SharedGateway), nil)
	if f == nil {
		t.Fatal("no facts")
	}
	return f
}

func TestSecondaryLinks(t *testing.T) {
	have := ""
	for _, l := range facts(t, nil).Links {
		have += fmt.Sprintf("%s %d %v vrf=%s %v\n", l.Name, l.Index, l.Addrs, l.VRF, l.Routes)
	}
	want := `bond0 6 [172.22.0.2/24] vrf= []
eth1 3 [172.19.1.2/24 172.19.1.60/32 fc00:1::2/64] vrf= [{10.9.0.0/16 172.19.1.8 0 false} {10.10.0.0/16 203.0.113.1 0 true} {172.19.1.0/24 invalid IP 0 false}]
eth2 4 [172.20.0.2/24] vrf=blue [{0.0.0.0/0 172.20.0.1 0 false} {172.20.0.0/24 invalid IP 0 false}]
`
	if have != want {
		t.Errorf("links\n%swant\n%s", have, want)
	}
}

// Only our own bridges' addresses are not the host's: others may have names like them.
func TestOthersDevicesNamedLikeBridges(t *testing.T) {
	h := facts(t, func(h *route.Host) {
		vlan := h.Links[5]
		vlan.Name, vlan.Index, vlan.Kind = "br-mgmt.10", 20, "vlan"
		h.Links = slices.Insert(h.Links, 3, vlan)
		h.Addrs = append(h.Addrs, route.Address{Dev: "br-int", Prefix: prefix("172.24.0.2/24")},
			route.Address{Dev: "br-egret-bfd", Prefix: prefix("172.24.1.2/24")},
			route.Address{Dev: "br-mgmt.10", Prefix: prefix("172.24.2.2/24")}, route.Address{Dev: "br-storage",
				Prefix: prefix("172.24.3.2/24")})
	})
	if have, want := fmt.Sprint(h.CIDRs()),
		"172.23.0.2/32 172.24.2.2/24 172.24.3.2/32 fc00:1::2/64]"; !strings.HasSuffix(have, want) {
		t.Errorf("have %s\nwant %s", have, want)
	}
}

// TestLinkLocalAddresses: those of IPv4 are the host's own if their scope is the universe, and they are not published.
func TestLinkLocalAddresses(t *testing.T) {
	h := facts(t, func(h *route.Host) {
		h.Addrs = append(h.Addrs, route.Address{Dev: "nodelocaldns", Prefix: prefix("169.254.20.10/32")},
			route.Address{Dev: "eth2", Prefix: prefix("169.254.3.3/16"), Local: true},
			route.Address{Dev: "ovn-k8s-mp0", Prefix: prefix("169.254.4.4/32")},
			route.Address{Dev: "eth1", Prefix: prefix("169.254.5.5/32"), Ours: true})
	})
	if have := fmt.Sprint(h.LinkLocal); have != "[169.254.20.10]" {
		t.Errorf("link-local addresses %s", have)
	}
	if have := fmt.Sprint(h.CIDRs(), h.Addrs); strings.Contains(have, "169.254.") {
		t.Errorf("published %s", have)
	}
}

// An address of a narrower scope is the host's, and makes no link one to host egress IPs on.
func TestScopeOfAddresses(t *testing.T) {
	h := facts(t, func(h *route.Host) {
		h.Addrs[3].Local = true
		h.Addrs = append(h.Addrs, route.Address{Dev: "eth2", Prefix: prefix("172.25.0.2/24"), Local: true})
	})
	if _, link := h.LinkFor(netip.MustParseAddr("172.19.1.50")); link != nil {
		t.Errorf("172.19.1.50 is on %v", link)
	}
	if have := fmt.Sprint(h.CIDRs()); !strings.Contains(have, " 172.19.1.2/32 ") ||
		!strings.Contains(have, " 172.25.0.2/32 ") {
		t.Errorf("published %s", have)
	}
}

// A gateway is one of its family: the logical router has no IPv4 route by an IPv6 one.
func TestGatewaysAreOfTheirFamily(t *testing.T) {
	byIPv6 := func(h *route.Host) { h.Routes[2].Via = netip.MustParseAddr("fe80::1") }
	if have := facts(t, byIPv6).Gateways; len(have) > 0 {
		t.Errorf("gateways %v", have)
	}
	if have := facts(t, nil).Gateways; len(have) != 1 {
		t.Errorf("gateways %v", have)
	}
}

// TestSeveralGateways: all that the kernel sends by on the uplink, whatever metric other links' defaults have.
func TestSeveralGateways(t *testing.T) {
	several := func(h *route.Host) {
		second := h.Routes[2]
		second.Via = netip.MustParseAddr("172.18.0.254")
		other := second
		other.Dev, other.Metric = "eth1", 0
		worse := h.Routes[2]
		worse.Via, worse.Metric = netip.MustParseAddr("172.18.0.253"), 300
		h.Routes = slices.Insert(h.Routes, 2, other, second)
		h.Routes = slices.Insert(h.Routes, 5, worse)
	}
	if have, want := fmt.Sprint(facts(t, several).Gateways), "[172.18.0.254 172.18.0.1]"; have != want {
		t.Errorf("gateways %s, want %s", have, want)
	}
}

func TestHome(t *testing.T) {
	for name, change := range map[string]func(*route.Host){
		"":                      nil,
		"link eth1 is down":     func(h *route.Host) { h.Links[5].Up = false },
		"no carrier":            func(h *route.Host) { h.Links[5].Carrier = false },
		"does not forward IPv4": func(h *route.Host) { h.Links[5].Forwards = false },
	} {
		h := facts(t, change)
		primary, link := h.LinkFor(netip.MustParseAddr("172.19.1.50"))
		if primary || (link != nil) != (change == nil) {
			t.Errorf("%s: 172.19.1.50 is on %v, primary %t", name, link, primary)
		}
		if fault := h.Faults()[prefix("172.19.1.0/24")]; (fault == "") != (change == nil) {
			t.Errorf("%s: fault %q", name, fault)
		}
		if _, link := h.LinkFor(netip.MustParseAddr("172.20.0.50")); link == nil || link.Name != "eth2" {
			t.Errorf("%s: 172.20.0.50 is on %v", name, link)
		}
		if primary, _ := h.LinkFor(netip.MustParseAddr("172.18.0.50")); !primary {
			t.Errorf("%s: 172.18.0.50 is not on the primary network", name)
		}
	}
}

// Where the longer subnet's link is at fault, the address is nowhere: it is not the shorter one's.
func TestHomeOfALongerSubnetThatCannot(t *testing.T) {
	h := &world.Host{Primary: []netip.Prefix{prefix("172.16.0.2/12")}, Links: []world.Link{{Name: "eth1",
		Addrs: []netip.Prefix{prefix("172.19.1.2/24")}, Fault: [2]string{"down", "down"}}}}
	if primary, link := h.LinkFor(netip.MustParseAddr("172.19.1.50")); primary || link != nil {
		t.Errorf("on %v, primary %t", link, primary)
	}
}

// What cannot host is published alone; the rest with its length.
func TestPublishedCIDRs(t *testing.T) {
	h := facts(t, func(h *route.Host) { h.Links[5].Forwards = false })
	want := "[172.18.0.2/24 172.19.1.2/32 172.19.1.60/32 172.20.0.2/24 172.20.9.9/32 172.21.0.2/32 172.22.0.2/24 " +
		"172.23.0.2/32 fc00:1::2/64]"
	if have := fmt.Sprint(h.CIDRs()); have != want {
		t.Errorf("have %s\nwant %s", have, want)
	}
}
