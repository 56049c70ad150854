package host

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/route"
	"github.com/egret-net/egret/internal/world"
)

// eth1 is the link of found that tests look at.
func eth1(t *testing.T, change func(*route.Host)) world.Link {
	t.Helper()
	return facts(t, change).Links[1]
}

// What a fault says to do can be typed as it stands, also for a VLAN's link.
func TestSettingOfVLAN(t *testing.T) {
	for name, want := range map[string]string{"eth1": "sysctl -w net.ipv4.conf.eth1.forwarding=1",
		"eth1.100": "sysctl -w net.ipv4.conf.eth1/100.forwarding=1"} {
		if fault := doesNotForward(route.Link{Name: name}); !strings.HasPrefix(fault, "link "+name+" ") ||
			!strings.HasSuffix(fault, want) {
			t.Errorf("fault %q, want %q", fault, want)
		}
	}
}

// A rule that comes before the link's own and takes what pods send elsewhere is a fault; one that does not is none, and
// so is one that comes after it.
func TestRulesOfOthers(t *testing.T) {
	const mark = 0x0e000003
	own := route.Rule{Priority: plan.RuleEgressIP.Priority(), Src: prefix("10.244.0.0/16"), Mark: mark,
		Mask: 0xffffffff, Table: 1003, Ours: true}
	for name, x := range map[string]struct {
		rule   route.Rule
		faulty bool
	}{
		"all to main":                   {route.Rule{Priority: 5000, Table: 254}, true},
		"the cluster to main, as early": {route.Rule{Priority: 6000, Src: prefix("10.244.0.0/16"), Table: 254}, true},
		"a pod":                         {route.Rule{Priority: 5000, Src: prefix("10.244.1.7/32"), Table: 254}, true},
		"our marks": {route.Rule{Priority: 100, Mark: 0x0e000000, Mask: 0xff000000, Table: 254},
			true},
		"by the management port": {route.Rule{Priority: 100, Iif: "ovn-k8s-mp0", Table: 254}, true},
		"what has not another mark": {route.Rule{Priority: 5998, Not: true, Mark: 0xca6c, Mask: 0xffffffff,
			Table: 254}, true},
		"somewhere outside":     {route.Rule{Priority: 5000, Dst: prefix("198.51.100.0/24"), Table: 254}, true},
		"dropped":               {route.Rule{Priority: 5000, Src: prefix("10.244.0.0/16")}, true},
		"beyond ours":           {route.Rule{Priority: 5000, Goto: 7000}, true},
		"the kernel's local":    {route.Rule{Table: 255}, false},
		"the kernel's for VRFs": {route.Rule{Priority: 1000}, false},
		"later":                 {route.Rule{Priority: 6001, Table: 254}, false},
		"no pod": {route.Rule{Priority: 5000, Src: prefix("198.51.100.0/24"), Table: 254},
			false},
		"among pods":                 {route.Rule{Priority: 5000, Dst: prefix("10.244.0.0/16"), Table: 254}, false},
		"by another device":          {route.Rule{Priority: 5000, Iif: "eth0", Table: 254}, false},
		"what the host sends":        {route.Rule{Priority: 5000, Oif: "eth0", Table: 254}, false},
		"another mark":               {route.Rule{Priority: 5000, Mark: 0x3f0, Mask: 0xffffffff, Table: 254}, false},
		"an empty table":             {route.Rule{Priority: 220, Table: 220}, false},
		"some of it, as a VPN":       {route.Rule{Priority: 5270, Table: 52}, false},
		"main without its default":   {route.Rule{Priority: 5997, Table: 254, Shortest: 1}, false},
		"elsewhere by the very link": {route.Rule{Priority: 5000, Dst: prefix("10.9.1.0/24"), Table: 254}, false},
		"before ours":                {route.Rule{Priority: 100, Goto: 5000}, false},
		"of ours":                    {route.Rule{Priority: 5999, Table: 254, Ours: true}, false},
		"of the other family":        {route.Rule{V6: true, Priority: 5000, Table: 254}, false},
	} {
		with := func(rules ...route.Rule) func(*route.Host) {
			return func(h *route.Host) {
				h.Rules = rules
				h.Routes = append(h.Routes, route.Route{Table: 52, Dst: prefix("100.64.0.7/32"), Dev: "tailscale0"})
			}
		}
		if fault := eth1(t, with(x.rule)).Fault[world.V4]; (fault != "") != x.faulty {
			t.Errorf("%s: fault %q", name, fault)
		}
		if fault := eth1(t, with(own, x.rule)).Fault[world.V4]; fault != "" {
			t.Errorf("%s, after ours: fault %q", name, fault)
		}
	}
}

// What a rule takes of one family says nothing of the other, and the fault says what to do.
func TestRuleOfOneFamily(t *testing.T) {
	fault := eth1(t, func(h *route.Host) {
		h.Rules = []route.Rule{{V6: true, Priority: 5000, Table: 254}}
		h.Routes = append(h.Routes, route.Route{Table: 254, Dst: prefix("::/0"), Via: netip.MustParseAddr("fc00::1"),
			Dev: "breth0"})
	}).Fault
	if fault[world.V4] != "" || !strings.Contains(fault[world.V6], "ip -6 rule show pref 5000") ||
		!strings.Contains(fault[world.V6], "a priority above 6000") {
		t.Errorf("faults %q", fault)
	}
}

// The link's own table may be somebody else's already; what is ours in it is none of that.
func TestTableOfOthers(t *testing.T) {
	if fault := eth1(t, nil).Fault; fault != [2]string{} {
		t.Errorf("fault %q with our own routes in the table", fault)
	}
	for want, change := range map[string]func(*route.Host){
		"VRF blue has routing table 1003": func(h *route.Host) { h.Links[0].Table = 1003 },
		"routes of somebody else (ip route show table 1003)": func(h *route.Host) {
			h.Routes = append(h.Routes, route.Route{Table: 1003, Dst: prefix("198.51.100.0/24"), Dev: "breth0"})
		},
	} {
		if fault := eth1(t, change).Fault; !strings.Contains(fault[world.V4], want) ||
			fault[world.V4] != fault[world.V6] {
			t.Errorf("fault %q, want %q", fault, want)
		}
	}
}
