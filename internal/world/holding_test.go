package world_test

import (
	"net/netip"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

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
	touched := []world.Touch{{Kind: world.KindHolders, Key: "prod"}}
	if got := w.SetHolding(said); !slices.Contains(got, touched[0]) || !w.Holds("n2", "prod", ip) {
		t.Errorf("touched %v and holds %v after it said so", got, w.Holds("n2", "prod", ip))
	}
	if got := w.SetHolding(said); got != nil {
		t.Errorf("the same again touched %v", got)
	}
	if got := w.SetNode(&world.Node{Name: "n2", BootID: "two"}); !slices.Contains(got, touched[0]) ||
		w.Holds("n2", "prod", ip) {
		t.Errorf("touched %v and holds %v after a reboot", got, w.Holds("n2", "prod", ip))
	}
	failing := &world.Holding{Node: "n2", BootID: "two", Problems: map[string]string{"prod": "nb refused it"}}
	want := []world.Touch{{Kind: world.KindHolders, Key: "prod"}, {Kind: world.KindProblems, Key: "prod"}}
	if got := w.SetHolding(failing); !slices.Equal(got, want) || w.Problem("n2", "prod") != "nb refused it" {
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
		if got := w.SetHolding(said); !slices.Equal(got, []world.Touch{{Kind: world.KindFaults, Key: "n2"}}) {
			t.Errorf("%v touched %v", faults, got)
		}
		if got := w.SetHolding(said); got != nil {
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
	if got := w.SetOwn(holds); !slices.Contains(got, world.Touch{Kind: world.KindHolders, Key: "prod"}) ||
		!slices.Equal(w.Holders("prod", ip), []string{"n1"}) {
		t.Errorf("touched %v, holders are %v", got, w.Holders("prod", ip))
	}
	w.SetHolding(&world.Holding{Node: "n1", BootID: "one"}) // late news
	if !w.Holds("n1", "prod", ip) || len(w.Holders("prod", ip)) != 1 {
		t.Error("late news of itself counts for this node")
	}
	if got := w.SetNode(&world.Node{Name: "n1", BootID: "two"}); !slices.Contains(got,
		world.Touch{Kind: world.KindHolders, Key: "prod"}) || w.Holds("n1", "prod", ip) {
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
		touched := w.SetEgressIP(&now)
		if have := w.Holders("prod", ip); !slices.Equal(have, x.want) || len(x.leaving) > 0 && len(touched) == 0 {
			t.Errorf("leaving %v: holders %v, want %v; touched %v", x.leaving, have, x.want, touched)
		}
	}
	w.DelEgressIP("prod")
	if have := w.Holders("prod", ip); len(have) != 0 {
		t.Errorf("holders %v of what is no EgressIP", have)
	}
}

func assigned(name, node string, ip netip.Addr) *world.EgressIP {
	return &world.EgressIP{
		Name: name, IPs: []netip.Addr{ip},
		Placement:  world.Placement{Items: []world.Assignment{{Node: node, IP: ip}}},
		Namespaces: labels.Everything(), Pods: labels.Everything(),
	}
}
