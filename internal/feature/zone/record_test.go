package zone_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/feature/zone"
	"github.com/egret-net/egret/internal/world"
)

// host is a node with an address, "" for none, in a /16 unless another length is named, and the addresses that are
// recorded of it.
func host(name, primary string, record ...string) *world.Node {
	n := node(name, 0)
	if primary != "" && !strings.Contains(primary, "/") {
		primary += "/16"
	}
	if primary != "" {
		n.Primary = []netip.Prefix{netip.MustParsePrefix(primary)}
	}
	for _, a := range record {
		n.Record.Addrs = append(n.Record.Addrs, netip.MustParseAddr(a))
	}
	return n
}

// recordOf is a record in one line.
func recordOf(r world.Record) string {
	var s []string
	for _, a := range r.Addrs {
		s = append(s, a.String())
	}
	return strings.Join(append(s, r.MAC.String()), " ")
}

func TestRecord(t *testing.T) {
	service := &world.Service{Namespace: "shop", Name: "web",
		ExternalIPs: []netip.Addr{netip.MustParseAddr("172.18.0.200")}}
	placed := &world.EgressIP{Name: "e", Namespaces: labels.Nothing(), Pods: labels.Nothing(),
		Placement: world.Placement{
			Items: []world.Assignment{{Node: "a", IP: netip.MustParseAddr("172.18.0.33")}}}}
	for name, c := range map[string]struct {
		nodes   []*world.Node
		want    string // z's record
		problem string // z's
	}{
		"the first":                   {[]*world.Node{host("z", "172.18.0.2")}, "172.18.0.2 ", ""},
		"nothing is named":            {[]*world.Node{host("z", "")}, "", ""},
		"kept while nothing is named": {[]*world.Node{host("z", "", "172.18.0.2")}, "172.18.0.2 ", ""},
		"another address": {[]*world.Node{host("z", "172.18.0.9", "172.18.0.2")}, "172.18.0.9 ",
			""},
		"another family stays": {[]*world.Node{host("z", "172.18.0.9", "172.18.0.2", "fd00:18::2")},
			"172.18.0.9 fd00:18::2 ", ""},
		"another family comes": {[]*world.Node{host("z", "172.18.0.2", "fd00:18::2")},
			"172.18.0.2 fd00:18::2 ", ""},
		"of another, which was first": {[]*world.Node{host("a", "172.18.0.9"), host("z", "172.18.0.9",
			"172.18.0.2")}, "172.18.0.2 ", "is also node a's: delete Node a if it is gone"},
		"of another, recorded": {[]*world.Node{host("z", "172.18.0.9", "172.18.0.2"),
			host("a", "172.18.0.9", "172.18.0.9")}, "172.18.0.2 ", "is also node a's"},
		"of another, which names nothing": {[]*world.Node{host("a", "", "172.18.0.9"), host("z", "172.18.0.9",
			"172.18.0.2")}, "172.18.0.2 ", "is recorded as node a's: delete Node a if it is gone"},
		"of another, which has another": {[]*world.Node{host("a", "172.18.0.5", "172.18.0.9"),
			host("z", "172.18.0.9", "172.18.0.2")}, "172.18.0.9 ", ""},
		"swapped": {[]*world.Node{host("a", "172.18.0.2", "172.18.0.9"),
			host("z", "172.18.0.9", "172.18.0.2")}, "172.18.0.9 ", ""},
		"a Service's, newly named": {[]*world.Node{host("z", "172.18.0.200", "172.18.0.2")}, "172.18.0.2 ",
			"is an address of Service shop/web, which keeps it"},
		"a Service's, of a node that joins": {[]*world.Node{host("z", "172.18.0.200")}, "172.18.0.200 ", ""},
		"a Service's, recorded as the node's": {[]*world.Node{host("z", "172.18.0.200", "172.18.0.200")},
			"172.18.0.200 ", ""},
		"an egress IP": {[]*world.Node{host("z", "172.18.0.33", "172.18.0.2")}, "172.18.0.2 ",
			"is an address of an EgressIP"},
		"an egress IP, of a node that joins": {[]*world.Node{host("z", "172.18.0.33")}, "",
			"is an address of an EgressIP"},
		"an egress IP, recorded as the node's": {[]*world.Node{host("z", "172.18.0.33", "172.18.0.33")}, "172.18.0.33 ",
			""},
		"in the cluster's own subnets": {[]*world.Node{host("z", "10.244.3.3", "172.18.0.2")}, "172.18.0.2 ",
			"is in a subnet of the cluster's own"},
	} {
		w := newWorld(dual)
		w.SetService(service)
		w.SetEgressIP(placed)
		for _, n := range c.nodes {
			w.SetNode(n)
		}
		a := zone.Allocate(w)["z"]
		said := decide.Messages(a.Problems)
		if recordOf(a.Record) != c.want || !strings.Contains(said, c.problem) || c.problem == "" && said != "" {
			t.Errorf("%s: recorded %q, want %q; %q", name, recordOf(a.Record), c.want, said)
		}
	}
}

// TestRecordOfAnAddressThatNoHostHas: it is not recorded, be it a node's first; addresses of clouds, alone in their
// networks, are.
func TestRecordOfAnAddressThatNoHostHas(t *testing.T) {
	for primary, problem := range map[string]string{
		"169.254.169.254/32":   "is no unicast address",
		"127.0.0.1/8":          "is no unicast address",
		"0.0.0.0/32":           "is no unicast address",
		"0.1.2.3/32":           "is no unicast address",
		"224.0.0.5/4":          "is no unicast address",
		"255.255.255.255/32":   "is no unicast address",
		"::1/128":              "is no unicast address",
		"fe80::7/64":           "is no unicast address",
		"ff02::1/128":          "is no unicast address",
		"172.18.0.9/1":         "is in a network larger than a /8",
		"2001:db8::9/31":       "is in a network larger than a /32",
		"172.18.255.255/16":    "is the first or last address of its network 172.18.0.0/16",
		"172.18.0.0/16":        "is the first or last address",
		"2001:db8:0:1::/64":    "is the first or last address",
		"172.18.0.1/16":        "is node a's default gateway",
		"172.18.0.9/32":        "",
		"172.18.0.8/31":        "",
		"10.0.0.9/8":           "",
		"203.0.113.7/32":       "",
		"2001:db8::9/128":      "",
		"2001:db8::ffff/112":   "",
		"172.18.255.254/16":    "",
		"2001:db8:ffff::1/126": "",
	} {
		w := newWorld(dual)
		a := host("a", "172.18.0.2", "172.18.0.2")
		a.Gateways = []netip.Addr{netip.MustParseAddr("172.18.0.1")}
		w.SetNode(a)
		w.SetNode(host("z", primary))
		have := zone.Allocate(w)["z"]
		said := decide.Messages(have.Problems)
		if (len(have.Record.Addrs) == 1) != (problem == "") || !strings.Contains(said, problem) ||
			problem == "" && said != "" {
			t.Errorf("%s: recorded %q; %q", primary, recordOf(have.Record), said)
		}
	}
}

// TestRecordMoves: what a recorded node says is not enough to have it recorded far away; there it must be in a network
// of another recorded node, or people must say so. Until then the former record stays.
func TestRecordMoves(t *testing.T) {
	stays := "far from 172.18.0.2, which stays recorded"
	a := host("a", "172.18.0.3", "172.18.0.3")
	for name, c := range map[string]struct {
		others    []*world.Node
		to        string
		confirmed string
		problem   string
	}{
		"alone, near":                        {nil, "172.18.0.200/24", "", ""},
		"alone, near, in a large network":    {nil, "172.18.0.200/16", "", ""},
		"alone, another host's":              {nil, "172.18.0.200/32", "", stays},
		"alone, far in a network that grows": {nil, "172.18.77.200/8", "", stays},
		"alone, outside":                     {nil, "8.8.8.8/32", "", stays},
		"alone, outside, in another's words": {nil, "8.8.8.8/24", "", stays},
		"confirmed":                          {nil, "203.0.113.7/32", "203.0.113.0/24", ""},
		"something else is confirmed":        {nil, "203.0.113.7/32", "203.0.112.0/24", stays},
		"in another node's network":          {[]*world.Node{a}, "172.18.77.200/16", "", ""},
		"its last address":                   {[]*world.Node{a}, "172.18.255.255/32", "", stays},
		"outside of it":                      {[]*world.Node{a}, "172.19.0.2/16", "", stays},
		"in a network of a node that is not recorded": {[]*world.Node{host("a", "203.0.113.3/24")},
			"203.0.113.7/24", "", stays},
		"in a network of a node that is recorded elsewhere": {[]*world.Node{host("a", "203.0.113.3/24",
			"172.18.0.3")}, "203.0.113.7/24", "", stays},
		"in all that another says it has": {[]*world.Node{host("a", "172.18.0.3/1", "172.18.0.3")},
			"203.0.113.7/24", "", stays},
	} {
		w := newWorld(dual)
		for _, n := range c.others {
			w.SetNode(n)
		}
		z := host("z", c.to, "172.18.0.2")
		if c.confirmed != "" {
			z.Confirmed = []netip.Prefix{netip.MustParsePrefix(c.confirmed)}
		}
		w.SetNode(z)
		have := zone.Allocate(w)["z"]
		want := z.Primary[0].Addr()
		if c.problem != "" {
			want = z.Record.Addrs[0]
		}
		said := decide.Messages(have.Problems)
		if !slices.Equal(have.Record.Addrs, []netip.Addr{want}) || !strings.Contains(said, c.problem) ||
			c.problem == "" && said != "" {
			t.Errorf("%s: recorded %q, want %s; %q", name, recordOf(have.Record), want, said)
		}
	}
}

// TestRecordOfHardwareAddresses: as of addresses.
func TestRecordOfHardwareAddresses(t *testing.T) {
	mac := func(s string) world.HardwareAddr {
		a, _ := world.ParseHardwareAddr(s)
		return a
	}
	with := func(name, names, record string) *world.Node {
		n := node(name, 0)
		n.UplinkMAC, n.Record.MAC = mac(names), mac(record)
		return n
	}
	const x, y = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
	for name, c := range map[string]struct {
		nodes []*world.Node
		want  string
	}{
		"the first":                       {[]*world.Node{with("z", x, "")}, x},
		"kept while nothing is named":     {[]*world.Node{with("z", "", x)}, x},
		"another card":                    {[]*world.Node{with("z", y, x)}, y},
		"of another, recorded":            {[]*world.Node{with("z", y, x), with("a", y, y)}, x},
		"of another, which names nothing": {[]*world.Node{with("z", y, x), with("a", "", y)}, x},
		"swapped":                         {[]*world.Node{with("z", y, x), with("a", x, y)}, y},
	} {
		w := newWorld(dual)
		for _, n := range c.nodes {
			w.SetNode(n)
		}
		if have := zone.Allocate(w)["z"].Record.MAC; have != mac(c.want) {
			t.Errorf("%s: recorded %s, want %s", name, have, c.want)
		}
	}
}
