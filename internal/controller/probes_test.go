package controller

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/probe"
	"github.com/egret-net/egret/internal/world"
)

func cluster(t *testing.T, nodes ...*world.Node) *world.World {
	t.Helper()
	subnets, err := world.ParseClusterSubnets("10.244.0.0/16/24,fd00:10:244::/48/64")
	if err != nil {
		t.Fatal(err)
	}
	w := world.New("", &world.Config{ClusterSubnets: subnets, ReachabilityTimeout: time.Second})
	for i, n := range nodes {
		n.Subnets = []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(i + 1)}), 24)}
		if n.ChassisID == "" {
			n.ChassisID = "c"
		}
		n.Ready = true
		w.SetNode(n)
	}
	return w
}

func egressNode(name string) *world.Node {
	return &world.Node{Name: name, Labels: map[string]string{world.AssignableLabel: ""}}
}

// TestTargets: egress nodes, the leader's, and witnesses up to three besides the own node.
func TestTargets(t *testing.T) {
	w := cluster(t, egressNode("a"), &world.Node{Name: "b"}, &world.Node{Name: "c"}, &world.Node{Name: "d"},
		&world.Node{Name: "e"})
	for _, c := range []struct{ self, leader, want string }{
		{"a", "", "a b c d"},
		{"a", "e", "a e b c"},
		{"b", "a", "a c d"},
		{"e", "e", "a e b c"},
	} {
		var names []string
		for _, x := range probeTargets(w, c.self, c.leader) {
			names = append(names, x.Node)
		}
		if have := strings.Join(names, " "); have != c.want {
			t.Errorf("on %s with leader %s: have %s, want %s", c.self, c.leader, have, c.want)
		}
	}
	host := &world.EgressService{Namespace: "shop", Name: "web"}
	host.Items = []world.Assignment{{Node: "e", IP: netip.MustParseAddr("172.18.0.100")}}
	host.Leaving = []world.Leaving{{Node: "d", IP: netip.MustParseAddr("172.18.0.100")}}
	w.SetEgressService(host)
	w.SetUnreachable("c", world.NodeUnreachable)
	var names []string
	for _, x := range probeTargets(w, "a", "") {
		names = append(names, x.Node)
	}
	if have := strings.Join(names, " "); have != "a c d e" {
		t.Errorf("hosts of EgressServices and unreachable nodes: have %s", have)
	}
	many := cluster(t, egressNode("a"), egressNode("b"), egressNode("c"), egressNode("d"), egressNode("e"),
		&world.Node{Name: "f"})
	new := egressNode("g")
	many.SetNode(new) // without subnets
	if have := probeTargets(many, "a", "b"); len(have) != 5 {
		t.Errorf("have %v", have)
	}
}

// TestManagementAddresses: the second address of each pod subnet.
func TestManagementAddresses(t *testing.T) {
	n := egressNode("a")
	w := cluster(t, n)
	n.Subnets = append(n.Subnets, netip.MustParsePrefix("fd00:10:244:1::/64"))
	have := probeTargets(w, "", "")[0].Addrs
	if len(have) != 2 || have[0] != netip.MustParseAddr("10.244.1.2") ||
		have[1] != netip.MustParseAddr("fd00:10:244:1::2") {
		t.Errorf("have %v", have)
	}
}

// followed is a prober that remembers whom it follows.
type followed []probe.Target

func (f *followed) Follow(t []probe.Target, _ probe.Witnesses) { *f = t }

// TestNewTargetsAreNotAnswering: from the moment on that a node is to be probed, before anything is decided, until the
// prober has an answer of it; and again when it has another address. Without probes nobody is.
func TestNewTargetsAreNotAnswering(t *testing.T) {
	w := cluster(t, egressNode("a"), egressNode("b"))
	prober := &followed{}
	c := New(w.Config, all.ServedKinds(), nil, nil, NewMetrics(), slog.New(slog.DiscardHandler))
	c.world, c.reach.prober, c.source = w, prober, noSource{}
	notAnswering := func() (names string) {
		for _, n := range w.Nodes() {
			if w.NotAnswering(n) {
				names += n
			}
		}
		return names
	}
	follow := func() { c.reach.outdated = true; c.followTargets() }
	follow()
	if have := notAnswering(); have != "ab" || len(*prober) != 2 {
		t.Errorf("not answering are %q, followed %v", have, *prober)
	}
	c.takeReachability(probe.Change{Node: "a"})
	c.takeReachability(probe.Change{Node: "b", Why: world.NodeUnreachable})
	follow()
	if have := notAnswering(); have != "" {
		t.Errorf("not answering are %q after all have been told of", have)
	}
	moved := *w.Node("a")
	moved.Subnets = []netip.Prefix{netip.MustParsePrefix("10.244.9.0/24")}
	w.SetNode(&moved)
	follow()
	if have := notAnswering(); have != "a" {
		t.Errorf("not answering are %q after a has another address", have)
	}
	w.Config.ReachabilityTimeout = 0
	w.SetNode(cluster(t, egressNode("c")).Node("c"))
	follow()
	if have := notAnswering(); have != "a" {
		t.Errorf("not answering are %q though nobody is probed", have)
	}
}

// TestDoubtEnds: whatever becomes of a target, and however fast, the prober's word ends the doubt about a node that
// answers.
func TestDoubtEnds(t *testing.T) {
	subnets, err := world.ParseClusterSubnets("127.1.0.0/16/24")
	if err != nil {
		t.Fatal(err)
	}
	w := world.New("", &world.Config{ClusterSubnets: subnets, ReachabilityTimeout: time.Second})
	at := func(name, subnet, primary string) {
		n := egressNode(name)
		n.ChassisID, n.Subnets = "c", []netip.Prefix{netip.MustParsePrefix(subnet)}
		if primary != "" {
			n.Primary = []netip.Prefix{netip.MustParsePrefix(primary)}
		}
		w.SetNode(n)
	}
	c := New(w.Config, all.ServedKinds(), nil, nil, NewMetrics(), slog.New(slog.DiscardHandler))
	c.world, c.source = w, noSource{}
	follow := func() { c.reach.outdated = true; c.followTargets() }
	prober := c.Probe("b", 0, probe.Files{}, nil)
	at("a", "127.1.1.0/24", "")
	at("b", "127.1.2.0/24", "")
	follow()
	go prober.Run(t.Context())
	for _, step := range []struct {
		name   string
		become func()
	}{
		{"new", func() {}},
		{"another address on the primary network", func() { at("a", "127.1.1.0/24", "192.0.2.1/24"); follow() }},
		{"another subnet", func() { at("a", "127.1.3.0/24", "192.0.2.1/24"); follow() }},
		{"another subnet, and the former one", func() {
			at("a", "127.1.4.0/24", "192.0.2.1/24")
			follow()
			at("a", "127.1.3.0/24", "192.0.2.1/24")
			follow()
		}},
	} {
		step.become()
		if !w.NotAnswering("a") {
			t.Errorf("%s: a is believed to answer before it was asked", step.name)
		}
		for late := time.After(20 * time.Second); w.NotAnswering("a"); {
			select {
			case task := <-c.tasks:
				task()
			case <-late:
				t.Fatalf("%s: a answers, and stays in doubt", step.name)
			}
		}
	}
}

// noSource has nothing new.
type noSource struct{}

func (noSource) Changes() <-chan kube.Change                      { return nil }
func (noSource) Synced() bool                                     { return false }
func (noSource) WentBack() int64                                  { return 0 }
func (noSource) LookAtWatches(now time.Time) time.Time            { return now.Add(time.Minute) }
func (noSource) ReadNow(context.Context, kube.Kind, string) error { return nil }
