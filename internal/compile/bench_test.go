package compile_test

import (
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
	m.Update(w, nil)
	for i := 0; b.Loop(); i++ {
		m.Update(w, w.SetPod(movedPod(i, i/10_000)))
	}
}
