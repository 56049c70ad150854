package world_test

import (
	"net/netip"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// TestRebootedNodeHoldsNothing: what a node said before a reboot does not count, and changes of what it says are
// touched.
func TestRebootedNodeHoldsNothing(t *testing.T) {
	ip := netip.MustParseAddr("172.18.0.33")
	w := world.New("n1", &world.Config{})
	w.SetNode(&world.Node{Name: "n2", BootID: "one"})
	w.SetEgressIP(assigned("prod", "n2", ip))
	said := &world.Holding{Node: "n2", BootID: "one", Holds: map[string][]netip.Addr{"prod": {ip}}}
	holders := world.Entry{Kind: world.KindHolders, Key: "prod"}
	got := w.ChangesOf(func() { w.SetHolding(said) })
	if !slices.Contains(got, holders) || !w.Holds("n2", "prod", ip) {
		t.Errorf("touched %v and holds %v after it said so", got, w.Holds("n2", "prod", ip))
	}
	if got := w.ChangesOf(func() { w.SetHolding(said) }); got != nil {
		t.Errorf("the same again touched %v", got)
	}
	got = w.ChangesOf(func() { w.SetNode(&world.Node{Name: "n2", BootID: "two"}) })
	if !slices.Contains(got, holders) || w.Holds("n2", "prod", ip) {
		t.Errorf("touched %v and holds %v after a reboot", got, w.Holds("n2", "prod", ip))
	}
	failing := &world.Holding{Node: "n2", BootID: "two", Problems: map[string]string{"prod": "nb refused it"}}
	want := []world.Entry{holders, {Kind: world.KindProblems, Key: "prod"}}
	got = w.ChangesOf(func() { w.SetHolding(failing) })
	if !slices.Equal(got, want) || w.Problem("n2", "prod") != "nb refused it" {
		t.Errorf("touched %v, problem %q", got, w.Problem("n2", "prod"))
	}
	if w.SetNode(&world.Node{Name: "n2", BootID: "three"}); w.Problem("n2", "prod") != "" {
		t.Errorf("problem %q of before a reboot", w.Problem("n2", "prod"))
	}
}

// TestFaultsAreTouched: another fault, another text for it, and its end are news.
func TestFaultsAreTouched(t *testing.T) {
	w := world.New("", &world.Config{})
	for _, faults := range []map[netip.Prefix]string{
		{netip.MustParsePrefix("172.19.1.0/24"): "link eth1 is down"},
		{netip.MustParsePrefix("172.19.1.0/24"): "link eth1 has no carrier"}, nil,
	} {
		said := &world.Holding{Node: "n2", BootID: "one", Faults: faults}
		got := w.ChangesOf(func() { w.SetHolding(said) })
		if !slices.Equal(got, []world.Entry{{Kind: world.KindFaults, Key: "n2"}}) {
			t.Errorf("%v touched %v", faults, got)
		}
		if got := w.ChangesOf(func() { w.SetHolding(said) }); got != nil {
			t.Errorf("the same again touched %v", got)
		}
	}
}

// TestOwnWordCounts: what this node knows of itself is true whatever Kubernetes says of it, but not after a reboot.
func TestOwnWordCounts(t *testing.T) {
	ip := netip.MustParseAddr("172.18.0.33")
	w := world.New("n1", &world.Config{})
	w.SetNode(&world.Node{Name: "n1", BootID: "one"})
	w.SetEgressIP(assigned("prod", "n1", ip))
	holds := &world.Holding{Node: "n1", BootID: "one", Holds: map[string][]netip.Addr{"prod": {ip}}}
	got := w.ChangesOf(func() { w.SetOwn(holds) })
	if !slices.Contains(got, world.Entry{Kind: world.KindHolders, Key: "prod"}) ||
		!slices.Equal(w.Holders("prod", ip), []string{"n1"}) {
		t.Errorf("touched %v, holders are %v", got, w.Holders("prod", ip))
	}
	w.SetHolding(&world.Holding{Node: "n1", BootID: "one"}) // late news
	if !w.Holds("n1", "prod", ip) || len(w.Holders("prod", ip)) != 1 {
		t.Error("late news of itself counts for this node")
	}
	if got := w.ChangesOf(func() { w.SetNode(&world.Node{Name: "n1", BootID: "two"}) }); !slices.Contains(got,
		world.Entry{Kind: world.KindHolders, Key: "prod"}) || w.Holds("n1", "prod", ip) {
		t.Errorf("touched %v and holds %v after a reboot", got, w.Holds("n1", "prod", ip))
	}
}

// TestOnlyWhomStatusNamesHolds: what a node says of an address that the controller gave to another, or takes from it,
// is nothing; a former holder counts while it is leaving.
func TestOnlyWhomStatusNamesHolds(t *testing.T) {
	ip := netip.MustParseAddr("172.18.0.33")
	w := world.New("n1", &world.Config{})
	for _, n := range []string{"n2", "n3"} {
		w.SetNode(&world.Node{Name: n, BootID: "one"})
		w.SetHolding(&world.Holding{Node: n, BootID: "one", Holds: map[string][]netip.Addr{"prod": {ip}}})
	}
	e := assigned("prod", "n3", ip)
	for _, x := range []struct {
		leaving []world.Leaving
		want    []string
	}{
		{nil, []string{"n3"}},
		{[]world.Leaving{{Node: "n2", IP: ip}}, []string{"n2", "n3"}},
		{[]world.Leaving{{Node: "n2", IP: netip.MustParseAddr("172.18.0.34")}}, []string{"n3"}},
		{[]world.Leaving{{Node: "n4", IP: ip}, {Node: "n3", IP: ip}}, []string{"n3"}},
	} {
		now := *e
		now.Leaving = x.leaving
		touched := w.ChangesOf(func() { w.SetEgressIP(&now) })
		if have := w.Holders("prod", ip); !slices.Equal(have, x.want) || len(x.leaving) > 0 && len(touched) == 0 {
			t.Errorf("leaving %v: holders %v, want %v; touched %v", x.leaving, have, x.want, touched)
		}
	}
	w.DelEgressIP("prod")
	if have := w.Holders("prod", ip); len(have) != 0 {
		t.Errorf("holders %v of what is no EgressIP", have)
	}
}

// TestFormerReportsCountForNothing: what a node says of a former giving of an address is not that it holds it, or
// steers to it, as it was given last; nor what it says of one that leaves. Where one of both says nothing of when, it
// counts. What comes to count, or to count no more, is touched.
func TestFormerReportsCountForNothing(t *testing.T) {
	ip := netip.MustParseAddr("172.18.0.33")
	to := world.Assignment{Node: "n2", IP: ip}
	for _, x := range []struct {
		given, says ref.Since
		want        bool
	}{{0, 0, true}, {0, 5, true}, {5, 0, true}, {5, 5, true}, {6, 5, false}, {5, 6, false}} {
		for _, leaves := range []bool{false, true} {
			w := world.New("", &world.Config{})
			w.SetNode(&world.Node{Name: "n2", BootID: "one"})
			e := assigned("prod", "n2", ip)
			if x.given != 0 {
				e.Given = []world.Given{{Assignment: to, Since: x.given}}
			}
			if leaves {
				e.Placement = world.Placement{Leaving: []world.Leaving{{Node: "n2", IP: ip, Given: x.given}}}
			}
			w.SetEgressIP(e)
			h := &world.Holding{Node: "n2", BootID: "one", Holds: map[string][]netip.Addr{"prod": {ip}},
				Steers: map[string][]world.Assignment{"prod": {to}}}
			w.SetHolding(h)
			again := *h
			again.SayHeld("prod", ip, x.says)
			again.SaySteers("prod", to, x.says)
			touched := w.ChangesOf(func() { w.SetHolding(&again) })
			steers := w.Steers("n2", "prod", world.V4, []world.Assignment{to})
			if w.Holds("n2", "prod", ip) != x.want || steers != x.want {
				t.Errorf("given %d, says %d, leaves %t: holds %t", x.given, x.says, leaves, w.Holds("n2", "prod", ip))
			}
			for _, k := range []world.Kind{world.KindHolders, world.KindSteering} {
				if slices.Contains(touched, world.Entry{Kind: k, Key: "prod"}) != (x.says != 0) {
					t.Errorf("says %d: touched %v", x.says, touched)
				}
			}
		}
	}
}

func assigned(name, node string, ip netip.Addr) *world.EgressIP {
	return &world.EgressIP{
		Name: name, IPs: []netip.Addr{ip},
		Placement:  world.Placement{Items: []world.Assignment{{Node: node, IP: ip}}},
		Namespaces: labels.Everything(), Pods: labels.Everything(),
	}
}
