package conntrack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/planetest"
)

// toService is a UDP connection of a client to a Service's address, translated to an endpoint.
func toService(client, service, endpoint string) Entry {
	c, s, e := netip.MustParseAddrPort(client), netip.MustParseAddrPort(service), netip.MustParseAddrPort(endpoint)
	return Entry{17, Tuple{Src: c.Addr(), Dst: s.Addr(), SrcPort: c.Port(), DstPort: s.Port()},
		Tuple{Src: e.Addr(), Dst: c.Addr(), SrcPort: e.Port(), DstPort: c.Port()}, hostZone, 0, Tuple{}}
}

func datagramsOf(pairs ...string) *plan.State {
	return translated(plan.Datagram{Protocol: "udp"}, pairs...)
}

// translated are rows that are like one.
func translated(like plan.Datagram, pairs ...string) *plan.State {
	s := plan.New()
	for _, p := range pairs {
		from, to, _ := strings.Cut(p, ">")
		like.From, like.To = netip.MustParseAddrPort(from), netip.MustParseAddrPort(to)
		s.Datagrams.Put(planetest.Owner("service"), like, plan.None{})
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
	p := NewDatagrams(t.Context(), f, slog.New(slog.DiscardHandler))
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

// TestDatagramsOfOthersAreNotRead: a change of one Service's endpoints has nobody look at another's connections.
func TestDatagramsOfOthersAreNotRead(t *testing.T) {
	const flaps, other = "172.18.0.2:30053>", "172.18.0.2:30054>10.244.1.5:53"
	f := NewFake(nil)
	p := NewDatagrams(t.Context(), f, slog.New(slog.DiscardHandler))
	step := func(want string, pairs ...string) {
		t.Helper()
		if err := p.Shrink(t.Context(), datagramsOf(pairs...)); err != nil {
			t.Fatal(err)
		}
		if have := clients(f); have != want {
			t.Fatalf("after %v connections of %q are left, want %q", pairs, have, want)
		}
	}
	step("", other, flaps+"10.244.1.6:53")
	f.Add(toService("172.18.0.9:1", "172.18.0.2:30054", "10.244.9.9:53")) // wrong, to see who looks
	f.Add(toService("172.18.0.9:2", "172.18.0.2:30053", "10.244.1.6:53"))
	step("172.18.0.9:1", other, flaps+"10.244.1.7:53")
	p.Forget()
	step("", other, flaps+"10.244.1.7:53")
}

// TestDatagramsOfOtherPrograms: rules of another program go after their row, and make entries until then; these are
// ended, too. What was never such a rule's is left alone, and so is everything some time later.
func TestDatagramsOfOtherPrograms(t *testing.T) { synctest.Test(t, entriesOfOtherPrograms) }

func entriesOfOtherPrograms(t *testing.T) {
	entry := func(port int, to string) Entry {
		return toService(fmt.Sprint("172.18.0.9:", port), "172.18.0.2:31053", to)
	}
	other := toService("172.18.0.9:9", "172.18.0.2:31054", "172.18.0.2:31054")
	f := NewFake(nil, entry(1, "172.18.0.2:31053"), other)
	p := NewDatagrams(t.Context(), f, slog.New(slog.DiscardHandler))
	shrink := func(s *plan.State, want string) {
		t.Helper()
		if err := p.Shrink(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if have := clients(f); have != want {
			t.Fatalf("connections of %q are left, want %q", have, want)
		}
	}
	foreign := plan.Datagram{Protocol: "udp", Foreign: true}
	former := translated(foreign, "172.18.0.2:31053>10.244.1.5:53")
	successor := translated(foreign, "172.18.0.2:31053>10.244.1.6:53")
	shrink(former, "172.18.0.9:9")
	f.Add(entry(2, "10.244.1.5:53"))
	shrink(former, "172.18.0.9:2 172.18.0.9:9")
	f.Add(entry(5, "10.244.1.6:53"))
	for _, c := range []struct {
		s    *plan.State
		want string
	}{{successor, "172.18.0.9:5 172.18.0.9:9"}, {plan.New(), "172.18.0.9:9"}} {
		begin := time.Now()
		shrink(c.s, c.want)
		for _, after := range lookAtOthers() {
			f.Add(entry(3, "10.244.1.5:53")) // by a rule of the former, which is still there
			time.Sleep(time.Until(begin.Add(after)))
			synctest.Wait()
			if have := clients(f); have != c.want {
				t.Fatalf("after %s connections of %q are left, want %q", after, have, c.want)
			}
		}
	}
	f.Add(entry(4, "172.18.0.2:31053")) // a process of the host
	time.Sleep(time.Hour)
	p.Forget()
	shrink(plan.New(), "172.18.0.9:4 172.18.0.9:9")
}

// TestKernelDatagrams: of the kernel's own connections those of UDP and SCTP to an endpoint that has gone end, and
// those of what is translated to nothing any more.
func TestKernelDatagrams(t *testing.T) {
	planetest.OwnNetns(t)
	for port, proto := range map[uint16]uint8{1: protoUDP, 2: protoSCTP, 3: 6} {
		for i, to := range []string{"10.244.1.5:53", "10.244.1.6:53"} {
			e := toService(fmt.Sprint("172.18.0.9:", int(port)+10*i), "172.18.0.2:30053", to)
			e.Proto = proto
			track(t, e)
		}
	}
	p := NewDatagrams(t.Context(), Kernel{}, slog.New(slog.DiscardHandler))
	for _, c := range []struct{ protocol, left string }{{"tcp", "1 2 3 11 12 13"}, {"sctp", "1 2 3 11 13"},
		{"udp", "1 3 13"}} {
		if err := p.Shrink(t.Context(), translated(plan.Datagram{Protocol: c.protocol},
			"172.18.0.2:30053>10.244.1.5:53")); err != nil {
			t.Fatal(err)
		}
		entries, err := Kernel{}.Dump(t.Context(), hostZone)
		if err != nil {
			t.Fatal(err)
		}
		var ports []int
		for _, e := range entries {
			ports = append(ports, int(e.Orig.SrcPort))
		}
		slices.Sort(ports)
		if have := strings.Trim(fmt.Sprint(ports), "[]"); have != c.left {
			t.Errorf("%s: connections from ports %s are left, want %s", c.protocol, have, c.left)
		}
	}
}

// failing is a Fake that cannot be read for a time.
type failing struct {
	*Fake
	fails atomic.Bool
}

func (f *failing) Dump(ctx context.Context, zone int, like ...Entry) ([]Entry, error) {
	if f.fails.Load() {
		return nil, errors.New("no netlink socket")
	}
	return f.Fake.Dump(ctx, zone, like...)
}

// TestDatagramsLookAfterFailure: connections that a rule of another program has made last, after the row has gone, end
// although the look at them failed.
func TestDatagramsLookAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &failing{Fake: NewFake(nil)}
		p := NewDatagrams(t.Context(), f, slog.New(slog.DiscardHandler))
		foreign := translated(plan.Datagram{Protocol: "udp", Foreign: true}, "172.18.0.2:31053>10.244.1.5:53")
		for _, s := range []*plan.State{foreign, plan.New()} {
			if err := p.Shrink(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(30 * time.Second)
		f.Add(toService("172.18.0.9:1", "172.18.0.2:31053", "10.244.1.5:53"))
		f.fails.Store(true)
		time.Sleep(40 * time.Second)
		synctest.Wait()
		f.fails.Store(false)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if have := clients(f.Fake); have != "" {
			t.Errorf("connections of %q are left", have)
		}
	})
}
