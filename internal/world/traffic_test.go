package world_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// selective is EgressIP e<i>, in force over IPv4, for what EgressIPTraffics say that have its number as label.
func selective(i int) *world.EgressIP {
	e := compiletest.EgressIP(i, "", compiletest.EgressAddr(i)[0])
	e.InForce, e.Traffic = [2]bool{true, false}, compiletest.TrafficSelector(fmt.Sprint(i))
	return e
}

// textOf tells everything and nothing from networks.
func textOf(s destinations.Set) string {
	switch {
	case s.Equal(destinations.Everything()):
		return "all"
	case len(s) == 0:
		return "none"
	}
	return s.String()
}

func claims(w *world.World, p *world.Pod) string {
	var out []string
	for _, c := range w.Claims(p, ref.DefaultNetwork, world.V4) {
		out = append(out, c.By.Name+" "+textOf(w.Destinations(c.By.Name, world.V4)))
	}
	return strings.Join(out, "; ")
}

func standbys(w *world.World, p *world.Pod) string {
	var out []string
	for _, s := range w.Standbys(p, world.V4) {
		var by []string
		for _, c := range s.For {
			by = append(by, c.By.Name)
		}
		out = append(out, s.By.Name+" for "+strings.Join(by, ", "))
	}
	return strings.Join(out, "; ")
}

// TestStandbys: an EgressIP stands by, as a whole, for the older ones that have a destination of its own; who stands by
// keeps nobody from anything.
func TestStandbys(t *testing.T) {
	p := &world.Pod{Namespace: "ns", Name: "p"}
	for _, x := range []struct{ networks, claims, standbys string }{
		{"172.20.0.0/16 172.21.0.0/16", "e0 172.20.0.0/16; e1 172.21.0.0/16", ""},
		{"172.20.0.0/16 172.20.1.0/24", "e0 172.20.0.0/16", "e1 for e0"},
		{"172.20.0.0/16 172.22.0.0/16 172.16.0.0/12", "e0 172.20.0.0/16; e1 172.22.0.0/16", "e2 for e0, e1"},
		{"172.20.0.0/16 172.20.0.0/15 172.21.0.0/16", "e0 172.20.0.0/16; e2 172.21.0.0/16", "e1 for e0, e2"},
		{"all 172.20.0.0/16", "e0 all", "e1 for e0"},
		{"172.20.0.0/16 all", "e0 172.20.0.0/16", "e1 for e0"},
		{"none all", "e1 all", ""},
		{"all none", "e0 all", ""},
	} {
		w := compiletest.Small("n1", world.SharedGateway)
		w.SetNamespace(&world.Namespace{Name: "ns"})
		for i, network := range strings.Fields(x.networks) {
			e := selective(i)
			switch network {
			case "all":
				e.Traffic = nil
			case "none":
			default:
				w.SetTraffic(compiletest.Traffic(i, fmt.Sprint(i), network))
			}
			w.SetEgressIP(e)
		}
		if have := claims(w, p); have != x.claims {
			t.Errorf("%s: claims %q, want %q", x.networks, have, x.claims)
		}
		if have := standbys(w, p); have != x.standbys {
			t.Errorf("%s: %q, want %q", x.networks, have, x.standbys)
		}
	}
}

// TestDestinations: they follow objects, their labels and the selector, and tell none from all.
func TestDestinations(t *testing.T) {
	w := compiletest.Small("n1", world.SharedGateway)
	w.SetNamespace(&world.Namespace{Name: "ns"})
	w.SetEgressIP(selective(0))
	unselected := selective(0)
	unselected.Traffic = nil
	everything, nothing := selective(0), selective(0)
	everything.Traffic, nothing.Traffic = labels.Everything(), labels.Nothing()
	for _, x := range []struct {
		change func()
		want   string
	}{
		{func() {}, "none"},
		{func() { w.SetTraffic(compiletest.Traffic(0, "0", "172.20.0.0/24", "fd00::/64")) },
			"172.20.0.0/24"},
		{func() { w.SetTraffic(compiletest.Traffic(1, "0", "172.20.1.0/24")) }, "172.20.0.0/23"},
		{func() { w.SetTraffic(compiletest.Traffic(0, "other", "172.20.0.0/24")) },
			"172.20.1.0/24"},
		{func() { w.SetEgressIP(everything) }, "172.20.0.0/23"},
		{func() { w.SetEgressIP(nothing) }, "none"},
		{func() { w.SetEgressIP(unselected) }, "all"},
		{func() { w.SetEgressIP(selective(0)) }, "172.20.1.0/24"},
		{func() { w.DelTraffic("t1") }, "none"},
	} {
		touched := w.ChangesOf(x.change)
		have := w.Destinations("e0", world.V4)
		if text := textOf(have); text != x.want {
			t.Errorf("have %s, want %s", text, x.want)
		}
		must := world.Entry{Kind: world.KindDestinations, Key: "e0"}
		if x.want != "none" && !slices.Contains(touched, must) {
			t.Errorf("%s: %v does not touch %v", x.want, touched, must)
		}
	}
}

// TestUnreadTraffic: a selector of traffic that cannot be read leaves the object its former one. Who does not know that
// has it claim everything before all others, for it may have been first with any of it.
func TestUnreadTraffic(t *testing.T) {
	p := &world.Pod{Namespace: "ns", Name: "p"}
	unread, another := selective(1), selective(1)
	unread.Traffic, unread.TrafficProblem, unread.TrafficUnknown = nil, "mend it", true
	*another = *unread
	another.UID = "another"
	next, missed := *unread, *unread
	next.Generation, missed.Generation = 1, 3
	w := compiletest.Small("n1", world.SharedGateway)
	w.SetNamespace(&world.Namespace{Name: "ns"})
	w.SetPod(p)
	w.SetEgressIP(selective(0))
	w.SetTraffic(compiletest.Traffic(0, "0", "172.20.0.0/16"))
	w.SetTraffic(compiletest.Traffic(1, "1", "172.21.0.0/16"))
	for _, x := range []struct {
		name    string
		change  func()
		claims  string
		touched bool
	}{
		{"it cannot be read", func() { w.SetEgressIP(unread) }, "e1 all", true},
		{"it can", func() { w.SetEgressIP(selective(1)) }, "e0 172.20.0.0/16; e1 172.21.0.0/16",
			true},
		{"not any more", func() { w.SetEgressIP(unread) },
			"e0 172.20.0.0/16; e1 172.21.0.0/16", false},
		{"for long", func() { w.SetEgressIP(unread) }, "e0 172.20.0.0/16; e1 172.21.0.0/16",
			false},
		{"nor the next one", func() { w.SetEgressIP(&next) }, "e0 172.20.0.0/16; e1 172.21.0.0/16",
			false},
		{"nor one after that which was not seen", func() { w.SetEgressIP(&missed) }, "e1 all", true},
		{"another object", func() { w.SetEgressIP(another) }, "e1 all", false},
		{"not in force", func() {
			e := *another
			e.InForce, e.Items = [2]bool{}, []world.Assignment{{Node: "n1", IP: e.IPs[0]}}
			w.SetEgressIP(&e)
		}, "e0 172.20.0.0/16", true},
	} {
		touched := slices.Contains(w.ChangesOf(x.change), world.Entry{Kind: world.KindPod, Key: "ns/p"})
		if have := claims(w, p); have != x.claims || touched != x.touched {
			t.Errorf("%s: claims %q, want %q; touched: %t", x.name, have, x.claims, touched)
		}
	}
}

// TestClaimsReadNoNetworks: a reader of a pod's claims is told when an EgressIP begins or ends to overlap another or to
// have networks at all, and not when networks come and go otherwise.
func TestClaimsReadNoNetworks(t *testing.T) {
	w := compiletest.Small("n1", world.SharedGateway)
	w.SetNamespace(&world.Namespace{Name: "ns"})
	w.SetTraffic(compiletest.Traffic(0, "0", "172.21.1.0/24"))
	w.SetEgressIP(selective(0))
	w.SetEgressIP(selective(1))
	p := &world.Pod{Namespace: "ns", Name: "p"}
	w.SetPod(p)
	told := false
	reader := world.NewReader(func() { told = true })
	for _, x := range []struct {
		networks string // of e1
		touches  bool
		further  string
	}{
		{"172.20.0.0/16", true, "; e1 172.20.0.0/16"},
		{"172.20.1.0/24", false, "; e1 172.20.1.0/24"},
		{"172.20.1.0/24 172.21.0.0/16", true, ""},
		{"172.21.0.0/16", false, ""},
		{"172.22.0.0/16", true, "; e1 172.22.0.0/16"},
		{"", true, ""},
	} {
		reader.Reading(w).Claims(p, ref.DefaultNetwork, world.V4)
		told = false
		if w.SetTraffic(compiletest.Traffic(1, "1", strings.Fields(x.networks)...)); told != x.touches {
			t.Errorf("%q: who has read the claims is told: %v", x.networks, told)
		}
		if have := claims(w, p); have != "e0 172.21.1.0/24"+x.further {
			t.Errorf("%q: claims %q", x.networks, have)
		}
	}
}

// TestWhoReadClaimsIsTold: over any history, claims and standbys are those of a world that knows the last objects
// alone, and if they have become others since they were read, what was read is touched.
func TestWhoReadClaimsIsTold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := compiletest.Small("n1", world.SharedGateway)
		dirty, last := map[string]struct{}{}, map[string]string{}
		readers := world.NewReaders(dirty)
		for range rapid.IntRange(1, 40).Draw(t, "changes") {
			clear(dirty)
			for range rapid.IntRange(1, 3).Draw(t, "before somebody looks") {
				compiletest.Change(t, w)
			}
			fresh := copyOf(w)
			for p := range w.EachPod() {
				now := decided(readers.ReaderOf(p.Key()).Reading(w), p)
				_, told := dirty[p.Key()]
				if known, was := last[p.Key()]; was && !told && known != now {
					t.Fatalf("%s: nobody is told that %q is %q", p.Key(), known, now)
				}
				want := decided(&fresh.View, p)
				byDefault := w.PrimaryNetwork(p.Namespace) == ref.DefaultNetwork
				if byDefault && now != want && sameAddresses(w, fresh, p) {
					t.Fatalf("%s: %q, want %q", p.Key(), now, want)
				}
				last[p.Key()] = now
			}
		}
	})
}

// sameAddresses says whether a pod has the same addresses in two worlds. If it lies, or another one says that it has an
// address, that depends on who said so first.
func sameAddresses(a, b *world.World, p *world.Pod) bool {
	return slices.Equal(a.PodIPs(p, ref.DefaultNetwork), b.PodIPs(p, ref.DefaultNetwork))
}

// decided is who has claims to a pod's packets, and who stands by for whom.
func decided(w *world.View, p *world.Pod) string {
	w.Pod(p.Key())
	var out []string
	for _, f := range []world.Family{world.V4, world.V6} {
		out = append(out, fmt.Sprint(w.Claims(p, ref.DefaultNetwork, f), w.Standbys(p, f)))
	}
	return strings.Join(out, "; ")
}

// copyOf is a world that was given the objects of another that claims in the default network follow.
func copyOf(w *world.World) *world.World {
	fresh := compiletest.Small("n1", world.SharedGateway)
	for _, name := range fresh.Nodes() {
		fresh.DelNode(name)
	}
	for _, name := range w.Nodes() { // which addresses are a pod's depends on its node's subnets
		fresh.SetNode(w.Node(name))
	}
	for _, name := range w.Keys(world.KindNamespace) {
		fresh.SetNamespace(w.Namespace(name))
	}
	for o := range world.Each[world.Service](&w.View, world.KindService) {
		fresh.SetService(o)
	}
	for o := range world.Each[world.EgressService](&w.View, world.KindEgressService) {
		fresh.SetEgressService(o)
	}
	for o := range world.Each[world.Traffic](&w.View, world.KindTraffic) {
		fresh.SetTraffic(o)
	}
	for e := range world.Each[world.EgressIP](&w.View, world.KindEgressIP) {
		fresh.SetEgressIP(e)
	}
	return fresh
}

// TestDestinationsAreThoseOfANewWorld: whatever has changed, they are what a world says that knows the last objects
// alone.
func TestDestinationsAreThoseOfANewWorld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, fresh := compiletest.Small("n1", world.SharedGateway), compiletest.Small("n1", world.SharedGateway)
		for range rapid.IntRange(0, 40).Draw(t, "changes") {
			compiletest.Change(t, w)
			for i := range 4 {
				w.Destinations(fmt.Sprint("e", i), world.V4)
			}
		}
		for e := range world.Each[world.EgressIP](&w.View, world.KindEgressIP) {
			for o := range world.Each[world.Service](&w.View, world.KindService) {
				fresh.SetService(o)
			}
			for o := range world.Each[world.EgressService](&w.View, world.KindEgressService) {
				fresh.SetEgressService(o)
			}
			for o := range world.Each[world.Traffic](&w.View, world.KindTraffic) {
				fresh.SetTraffic(o)
			}
			fresh.SetEgressIP(e)
			for _, f := range []world.Family{world.V4, world.V6} {
				have, want := w.Destinations(e.Name, f), fresh.Destinations(e.Name, f)
				if !have.Equal(want) {
					t.Fatalf("%s over %s: %v, want %v", e.Name, f, have, want)
				}
			}
		}
	})
}

// TestSumOfNetworksIsBounded: what is too much of what an EgressIP selects does not count, the youngest first, and does
// once there is room; another EgressIP that selects the same has what it has room for.
func TestSumOfNetworksIsBounded(t *testing.T) {
	w := compiletest.Small("n1", world.SharedGateway)
	w.SetEgressIP(selective(0))
	few := selective(1)
	few.Traffic = labels.SelectorFromSet(labels.Set{"few": ""})
	w.SetEgressIP(few)
	w.SetTraffic(numbered("c", 1, 10_000))
	w.SetTraffic(numbered("b", 2, 9_999))
	young := numbered("a", 3, 2)
	young.Labels["few"] = ""
	w.SetTraffic(young)
	expect := func(when string, networks, others int, leftOut ...string) {
		t.Helper()
		var names []string
		for _, o := range w.LeftOutTraffic(w.EgressIP("e0")) {
			names = append(names, o.Name)
		}
		have, also := len(w.Destinations("e0", world.V4)), len(w.Destinations("e1", world.V4))
		if have != networks || also != others || !slices.Equal(names, leftOut) {
			t.Errorf("%s: %d networks and %d of the other, without %v; want %d, %d, %v", when, have, also, names, networks,
				others, leftOut)
		}
	}
	expect("too many", 19_999, 2, "a")
	w.SetTraffic(numbered("d", 4, 1))
	expect("one more that has room", 20_000, 2, "a")
	w.SetTraffic(numbered("c", 1, 9_998))
	expect("an older one is smaller", 20_000, 2)
	w.DelTraffic("c")
	expect("it has gone", 10_002, 2)
}

// numbered is an EgressIPTraffic, of so many networks in its own /8, that e0 selects.
func numbered(name string, age, networks int) *world.Traffic {
	var list []netip.Prefix
	for i := range networks {
		list = append(list, netip.PrefixFrom(compiletest.V4(20+age, i>>7, i<<1&255, 0), 24))
	}
	o := compiletest.Traffic(0, "0")
	o.Name, o.Created, o.Networks = name, time.Unix(int64(age), 0), destinations.Of(list...)
	return o
}
