package conntrack

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/planetest"
)

// masquerades are the addresses of two networks. All their pods have the same addresses.
var masquerades = map[string]netip.Addr{"GR_blue_n1": addr("169.254.0.11"), "GR_red_n1": addr("169.254.0.13")}

var zonesOfTwo = map[string]int{"GR_n1_snat": 5, "GR_n1_dnat": 6, "GR_blue_n1_snat": 15, "GR_blue_n1_dnat": 16,
	"GR_red_n1_snat": 25, "GR_red_n1_dnat": 26}

// through is a TCP connection in all zones that it passes: port is the one that the network's router gives it.
func through(router, pod, dst string, from, port uint16, seen string) []Entry {
	entry := func(zone int, src netip.Addr, sport uint16, as netip.Addr, asPort uint16) Entry {
		return Entry{Proto: 6, Zone: zone, Orig: Tuple{Src: src, Dst: addr(dst), SrcPort: sport, DstPort: 443},
			Reply: Tuple{Src: addr(dst), Dst: as, SrcPort: 443, DstPort: asPort}}
	}
	p, m, s := addr(pod), masquerades[router], addr(seen)
	return []Entry{
		entry(zonesOfTwo[router+"_dnat"], p, from, p, from), entry(zonesOfTwo[router+"_snat"], p, from, m, port),
		entry(6, m, port, m, port), entry(5, m, port, s, port+1), entry(plan.ZoneGateway, s, port+1, s, port+1),
	}
}

// inNetworks wants pods of networks to have sources: of "GR_blue_n1 10.244.1.5" an address.
func inNetworks(kv ...string) *plan.State {
	s := plan.New()
	for router, m := range masquerades {
		s.Masquerades.Put(planetest.Owner("zone"), plan.Masquerade{Router: router, IP: m, Behind: "GR_n1"}, plan.None{})
	}
	for i := 0; i < len(kv); i += 2 {
		router, pod, _ := strings.Cut(kv[i], " ")
		s.Sources.Put(planetest.Owner("eip"), plan.Source{Router: router, Pod: addr(pod)},
			plan.SourcesTo{{To: plan.Everywhere, IP: addr(kv[i+1])}})
	}
	s.SourceExempt.Put(planetest.Owner("zone"), addr("172.18.0.3"), plan.None{})
	return s
}

// count is how many entries of each connection are tracked.
func count(f *Fake, connections map[string][]Entry) string {
	var out []string
	for name, all := range connections {
		n := 0
		for _, e := range f.Entries() {
			if slices.ContainsFunc(all, func(o Entry) bool { return o == e }) {
				n++
			}
		}
		out = append(out, fmt.Sprint(name, " ", n))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// TestTwoNetworks: connections of pods with one address in two networks, and in the default one, from one port to one
// destination, end each by what is right for it, and then in all zones.
func TestTwoNetworks(t *testing.T) {
	const pod, dst = "10.244.1.5", "8.8.8.8"
	all := map[string][]Entry{
		"blue":       through("GR_blue_n1", pod, dst, 1000, 2000, "172.18.0.50"),
		"blue other": through("GR_blue_n1", "10.244.1.6", dst, 1000, 2001, "172.18.0.50"),
		"blue node":  through("GR_blue_n1", pod, "172.18.0.3", 1000, 2000, "172.18.0.2"),
		"red":        through("GR_red_n1", pod, dst, 1000, 3000, "172.18.0.50"),
		"default":    {conn(pod, dst, "172.18.0.50")},
	}
	begin := func() *plan.State {
		return inNetworks("GR_blue_n1 "+pod, "172.18.0.50", "GR_blue_n1 10.244.1.6", "172.18.0.50",
			"GR_red_n1 "+pod, "172.18.0.50", "GR_n1 "+pod, "172.18.0.50")
	}
	for name, c := range map[string]struct {
		want *plan.State
		left string
	}{
		"all right": {begin(), "blue 5, blue node 5, blue other 5, default 1, red 5"},
		"withdrawn from blue's pod": {inNetworks("GR_blue_n1 10.244.1.6", "172.18.0.50", "GR_red_n1 "+pod,
			"172.18.0.50", "GR_n1 "+pod, "172.18.0.50"), "blue 0, blue node 5, blue other 5, default 1, red 5"},
		"another one for red's": {inNetworks("GR_blue_n1 "+pod, "172.18.0.50", "GR_blue_n1 10.244.1.6", "172.18.0.50",
			"GR_red_n1 "+pod, "172.18.0.51", "GR_n1 "+pod, "172.18.0.50"),
			"blue 5, blue node 5, blue other 5, default 1, red 0"},
		"withdrawn from the default network's": {inNetworks("GR_blue_n1 "+pod, "172.18.0.50", "GR_blue_n1 10.244.1.6",
			"172.18.0.50", "GR_red_n1 "+pod, "172.18.0.50"), "blue 5, blue node 5, blue other 5, default 0, red 5"},
	} {
		for _, way := range []string{"as the first", "as a change", "aside"} {
			f := NewFake(zonesOfTwo)
			p := newPlane(f)
			track := func() {
				for _, entries := range all {
					for _, e := range entries {
						f.Add(e)
					}
				}
			}
			switch way {
			case "as the first":
				track()
			case "as a change":
				track()
				shrink(t, p, begin())
			case "aside":
				shrink(t, p, c.want)
				track()
				p.readAside([]plan.Source{{Router: "GR_blue_n1", Pod: addr(pod)}, {Router: "GR_red_n1", Pod: addr(pod)},
					{Router: "GR_n1"}})
			}
			shrink(t, p, c.want)
			if have := count(f, all); have != c.left {
				t.Errorf("%s, %s: left\n%s, want\n%s", name, way, have, c.left)
			}
		}
	}
}

// TestNumberIsAnothers: connections of a network that is gone end before pods of the one that gets its address could
// have them, whatever their source; and those that both routers have stay.
func TestNumberIsAnothers(t *testing.T) {
	gone := through("GR_blue_n1", "10.244.1.5", "8.8.8.8", 1000, 2000, "172.18.0.50")[2:]
	old := through("GR_blue_n1", "10.244.1.5", "8.8.4.4", 1000, 2000, "172.18.0.2")[2:]
	own := through("GR_blue_n1", "10.244.1.5", "8.8.4.4", 1001, 2001, "172.18.0.2")
	f := NewFake(zonesOfTwo, slices.Concat(gone, old, own)...)
	p := newPlane(f)
	shrink(t, p, plan.New())
	all := map[string][]Entry{"gone": gone, "old": old, "own": own}
	if have, want := count(f, all), "gone 3, old 3, own 5"; have != want {
		t.Errorf("without a network left %s, want %s", have, want)
	}
	shrink(t, p, inNetworks())
	if have, want := count(f, all), "gone 0, old 0, own 5"; have != want {
		t.Errorf("left %s, want %s", have, want)
	}
	for _, e := range gone {
		f.Add(e)
	}
	shrink(t, p, plan.New())
	shrink(t, p, inNetworks())
	if have, want := count(f, all), "gone 0, old 0, own 5"; have != want {
		t.Errorf("when it has come back, left %s, want %s", have, want)
	}
}

// TestConnectionsOfNetworks: after any changes of the sources of pods in two networks and the default one, each of
// their connections has the right one, and those that had it are there.
func TestConnectionsOfNetworks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := NewFake(zonesOfTwo)
		p := newPlane(f)
		routers := []string{"GR_blue_n1", "GR_red_n1", "GR_n1"}
		addrs := rapid.SampledFrom([]string{"172.18.0.2", "172.18.0.50", "172.18.0.51"})
		next := uint16(2000)
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			var kv []string
			has := map[string]string{}
			for _, router := range routers {
				for _, pod := range []string{"10.244.1.5", "10.244.1.6"} {
					if source := addrs.Draw(t, router+" "+pod); source != "172.18.0.2" {
						kv = append(kv, router+" "+pod, source)
						has[router+" "+pod] = source
					}
				}
			}
			type connection struct {
				entries []Entry
				right   bool
			}
			var all []connection
			for range rapid.IntRange(0, 6).Draw(t, "connections") {
				router, pod := rapid.SampledFrom(routers).Draw(t, "router"), rapid.SampledFrom([]string{"10.244.1.5",
					"10.244.1.6"}).Draw(t, "pod")
				source, want := addrs.Draw(t, "as"), has[router+" "+pod]
				if want == "" {
					want = "172.18.0.2"
				}
				next += 2
				entries := through(router, pod, "8.8.8.8", next, next, source)
				if router == "GR_n1" {
					entries = []Entry{{Proto: 6, Zone: 5,
						Orig:  Tuple{Src: addr(pod), Dst: addr("8.8.8.8"), SrcPort: next, DstPort: 443},
						Reply: Tuple{Src: addr("8.8.8.8"), Dst: addr(source), SrcPort: 443, DstPort: next}}}
				}
				all = append(all, connection{entries, source == want})
				for _, e := range entries {
					f.Add(e)
				}
			}
			if rapid.Bool().Draw(t, "is told nothing") {
				p.Forget()
			}
			if len(all) > 0 {
				p.readAside(routerSources(p.routers))
			}
			if err := p.Shrink(t.Context(), inNetworks(kv...)); err != nil && !errors.Is(err, plane.ErrUnfinished) {
				t.Fatal(err)
			}
			p.Forget()
			if err := p.Shrink(t.Context(), inNetworks(kv...)); err != nil {
				t.Fatal(err)
			}
			for _, c := range all {
				n := len(c.entries)
				if !c.right {
					n = 0
				}
				if have := count(f, map[string][]Entry{"": c.entries}); have != fmt.Sprint(" ", n) {
					t.Fatalf("of %+v there are%s, want %d", c.entries, have, n)
				}
			}
		}
	})
}
