package zone_test

import (
	"net/netip"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/feature/zone"
	"github.com/egret-net/egret/internal/world"
)

// host is a node with an address, "" for none, and the addresses that are recorded of it.
func host(name, primary string, record ...string) *world.Node {
	n := node(name, 0)
	if primary != "" {
		n.Primary = []netip.Prefix{netip.MustParsePrefix(primary + "/16")}
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
			"is an egress IP that a node has"},
		"an egress IP, of a node that joins": {[]*world.Node{host("z", "172.18.0.33")}, "",
			"is an egress IP that a node has"},
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
		a := zone.Allocate(&w.View)["z"]
		said := decide.Messages(a.Problems)
		if recordOf(a.Record) != c.want || !strings.Contains(said, c.problem) || c.problem == "" && said != "" {
			t.Errorf("%s: recorded %q, want %q; %q", name, recordOf(a.Record), c.want, said)
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
		if have := zone.Allocate(&w.View)["z"].Record.MAC; have != mac(c.want) {
			t.Errorf("%s: recorded %s, want %s", name, have, c.want)
		}
	}
}
