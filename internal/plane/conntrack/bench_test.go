package conntrack

import (
	"fmt"
	"log/slog"
	"net/netip"
	"testing"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/planetest"
)

// fillKernel tracks n connections of hosts outside in a network namespace of its own.
func fillKernel(b *testing.B, n int) {
	b.Helper()
	planetest.OwnNetns(b)
	for i := range n {
		client := netip.AddrFrom4([4]byte{172, 19, byte(i >> 14), byte(i >> 6)})
		e := toService(netip.AddrPortFrom(client, uint16(1000+i&63)).String(), "172.18.0.2:30080", "10.244.1.9:80")
		e.Proto = 6
		if i%2 == 0 {
			e.Proto = protoUDP
		}
		track(b, e)
	}
}

// BenchmarkDatagrams is one change of the endpoints of a Service, beside 100,000 connections of others.
func BenchmarkDatagrams(b *testing.B) {
	fillKernel(b, 100_000)
	p := NewDatagrams(b.Context(), Kernel{}, slog.New(slog.DiscardHandler))
	if err := p.Shrink(b.Context(), datagramsOf("172.18.0.2:30053>10.244.1.5:53")); err != nil {
		b.Fatal(err)
	}
	i := 0
	for b.Loop() {
		i++
		if err := p.Shrink(b.Context(), datagramsOf("172.18.0.2:30053>10.244.1.5:53",
			fmt.Sprint("172.18.0.2:30054>10.244.1.", 6+i%2, ":53"))); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSources is one pod that gets another source on a link of the host, beside 100,000 connections of others.
func BenchmarkSources(b *testing.B) {
	fillKernel(b, 100_000)
	p := New(b.Context(), Kernel{}, Kernel{}, func() map[string]Own {
		return map[string]Own{plan.HostKernel: {Pods: own()["GR_n1"].Pods, Mark: 0xe000000, Mask: 0xff000000}}
	}, slog.New(slog.DiscardHandler))
	s, last := sources(), &plan.Rows{}
	if err := p.Shrink(b.Context(), s); err != nil {
		b.Fatal(err)
	}
	i := 0
	for b.Loop() {
		i++
		r := &plan.Rows{}
		r.AddSource(plan.Source{Router: plan.HostKernel, Pod: addr("10.244.1.5")},
			plan.SourceTo{To: plan.Everywhere, IP: addr(fmt.Sprint("172.18.0.", 50+i%2))})
		s.Replace(planetest.Owner("eip"), last, r)
		last = r
		if err := p.Shrink(b.Context(), s); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDump is a look at all of 100,000 connections.
func BenchmarkDump(b *testing.B) {
	fillKernel(b, 100_000)
	for b.Loop() {
		if all, err := (Kernel{}).Dump(b.Context(), hostZone); err != nil || len(all) != 100_000 {
			b.Fatal(len(all), err)
		}
	}
}
