package ovn

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/ovn/ovntest"
)

// BenchmarkElement is one pod that joins or leaves a set of many, as far as the agent and the database's server go: no hypervisor takes part.
func BenchmarkElement(b *testing.B) {
	for _, n := range []int{10, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchElement(b, n) })
	}
}

func benchElement(b *testing.B, n int) {
	env := ovntest.StartDatabases(b)
	p := NewNB(env.NB, Options{Wait: -1, Log: quiet()})
	defer p.Close()
	s := plan.New()
	put(s, tableAddressSet, "pods", plan.RowID{}, plan.Cols{"name": "pods"})
	for i := range n {
		s.SetElems.Put("egressip", plan.SetElem{Set: "pods", Addr: nth(i).String()}, plan.None{})
	}
	if err := p.Grow(b.Context(), s); err != nil {
		b.Fatal(err)
	}
	one := plan.SetElem{Set: "pods", Addr: nth(n).String()}
	for i := 0; b.Loop(); i++ {
		if i%2 == 0 {
			s.SetElems.Put("egressip", one, plan.None{})
		} else {
			s.SetElems.Drop("egressip", one)
		}
		if err := p.Grow(b.Context(), s); err != nil {
			b.Fatal(err)
		}
	}
}

func nth(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 128, byte(i >> 8), byte(i)}) }
