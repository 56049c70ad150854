package conntrack

import (
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/planetest"
)

// toService is a UDP connection of a client to a Service's address, translated to an endpoint.
func toService(client, service, endpoint string) Entry {
	c, s, e := netip.MustParseAddrPort(client), netip.MustParseAddrPort(service), netip.MustParseAddrPort(endpoint)
	return Entry{17, Tuple{Src: c.Addr(), Dst: s.Addr(), SrcPort: c.Port(), DstPort: s.Port()},
		Tuple{Src: e.Addr(), Dst: c.Addr(), SrcPort: e.Port(), DstPort: c.Port()}, hostZone, 0}
}

func datagramsOf(pairs ...string) *plan.State {
	s := plan.New()
	for _, p := range pairs {
		from, to, _ := strings.Cut(p, ">")
		s.Datagrams.Put(planetest.Owner("service"),
			plan.Datagram{From: netip.MustParseAddrPort(from), To: netip.MustParseAddrPort(to)},
			plan.None{})
	}
	return s
}

func clients(f *Fake) string {
	var out []string
	for _, e := range f.Entries() {
		out = append(out, netip.AddrPortFrom(e.Orig.Src, e.Orig.SrcPort).String())
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestDatagramsFollowEndpoints: what goes to an endpoint that has gone is flushed, also what was there before this
// process; nothing else.
func TestDatagramsFollowEndpoints(t *testing.T) {
	tcp := toService("172.18.0.9:5", "172.18.0.2:30053", "172.18.0.2:9")
	tcp.Proto = 6
	f := NewFake(nil,
		toService("172.18.0.9:1", "172.18.0.2:30053", "172.18.0.2:53"), toService("172.18.0.9:2", "172.18.0.2:30053",
			"10.244.1.5:53"),
		toService("172.18.0.9:3", "172.18.0.2:30053", "10.244.9.9:53"), toService("172.18.0.9:4", "172.18.0.2:53",
			"172.18.0.2:53"), tcp)
	p := NewDatagrams(f, slog.New(slog.DiscardHandler))
	step := func(want string, pairs ...string) {
		t.Helper()
		if err := p.Shrink(t.Context(), datagramsOf(pairs...)); err != nil {
			t.Fatal(err)
		}
		if have := clients(f); have != want {
			t.Fatalf("after %v connections of %q are left, want %q", pairs, have, want)
		}
	}
	const all = "172.18.0.9:1 172.18.0.9:2 172.18.0.9:4 172.18.0.9:5"
	step(all, "172.18.0.2:30053>172.18.0.2:53", "172.18.0.2:30053>10.244.1.5:53")
	dumps := f.Dumps()
	step(all, "172.18.0.2:30053>172.18.0.2:53", "172.18.0.2:30053>10.244.1.5:53")
	if f.Dumps() != dumps {
		t.Error("looked again without a change")
	}
	step("172.18.0.9:1 172.18.0.9:4 172.18.0.9:5", "172.18.0.2:30053>172.18.0.2:53")
	p.Forget()
	step("172.18.0.9:4 172.18.0.9:5")
}
