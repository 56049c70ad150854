package compile_test

import (
	"fmt"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
)

// BenchmarkFull: 500 nodes, 10,000 pods, 1,000 EgressIPs; the aim is less than 100 ms.
func BenchmarkFull(b *testing.B) {
	w := compiletest.Big()
	for b.Loop() {
		compile.Full(w, all.Features())
	}
}

// BenchmarkOnePod: one pod changes in that world; the aim is less than 1 ms.
func BenchmarkOnePod(b *testing.B) {
	w := compiletest.Big()
	m := compile.NewMemo(all.Features())
	m.Update(w)
	for i := 0; b.Loop(); i++ {
		w.SetPod(movedPod(i, i/10_000))
		m.Update(w)
	}
}

// BenchmarkOneNetwork: another network takes the place of one that 100 EgressIPs of 50 pods share.
func BenchmarkOneNetwork(b *testing.B) { swapNetworks(b, 100, 10) }

// BenchmarkOneOfManyNetworks: the same with one EgressIP of 50 pods and 10,000 networks.
func BenchmarkOneOfManyNetworks(b *testing.B) { swapNetworks(b, 1, 10_000) }

func swapNetworks(b *testing.B, egressIPs, networks int) {
	swap := swapNetwork(egressIPs, networks)
	b.ReportAllocs()
	for b.Loop() {
		swap()
	}
}

// swapNetwork is the change of one of the networks that EgressIPs of 50 pods share, forth and back.
func swapNetwork(egressIPs, networks int) func() {
	w, m := compiletest.Selective(egressIPs, 50, networks), compile.NewMemo(all.Features())
	m.Update(w)
	was, now := compiletest.SomeNetworks(networks), compiletest.SomeNetworks(networks)
	now[0] = "30.0.0.0/24"
	next, last := compiletest.Traffic(0, "a", now...), compiletest.Traffic(0, "a", was...)
	return func() {
		w.SetTraffic(next)
		m.Update(w)
		next, last = last, next
	}
}

// BenchmarkNewEgressIP: an EgressIP of ten pods comes, comes into force and goes, beside pods that it does not select.
func BenchmarkNewEgressIP(b *testing.B) {
	for _, others := range []int{10, 10_000} {
		b.Run(fmt.Sprint("beside ", others), func(b *testing.B) {
			live := newEgressIP(others)
			b.ReportAllocs()
			for b.Loop() {
				live()
			}
		})
	}
}

// newEgressIP is the life of an EgressIP beside so many pods that it does not select, again and again.
func newEgressIP(others int) func() {
	c, m := compiletest.NewNewcomer("n1", others), compile.NewMemo(all.Features())
	m.Update(c.World)
	return func() {
		for _, happen := range c.Life() {
			happen()
			m.Update(c.World)
		}
	}
}
