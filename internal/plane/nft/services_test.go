package nft

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/service"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/world"
)

// TestKernelTakesServices: whatever Services there are, and however they change, the kernel takes their rows, and
// another process finds nothing to do.
func TestKernelTakesServices(t *testing.T) {
	p := openPlane(t)
	features := []compile.Feature{service.Host{}, service.HostPorts{}}
	for i, mode := range []world.GatewayMode{world.LocalGateway, world.SharedGateway} {
		w, random := compiletest.Small("n1", mode), rapid.Custom(func(t *rapid.T) *world.Service {
			return compiletest.RandomService(t, rapid.IntRange(0, 5).Draw(t, "i"))
		})
		for j := range 3 {
			w.SetService(random.Example(100*i + j))
			want := compile.Full(w, features)
			fatal(t, apply(t, p, want))
			p.Forget()
			inet := &counted{Interface: p.inet.nft}
			fresh := New(inet, p.netdev.nft, linkIndex)
			fatal(t, plane.Apply(t.Context(), []plane.Plane{fresh}, want))
			if inet.runs != 0 {
				t.Fatalf("a new process wrote %d times:\n%v", inet.runs, want.Lines())
			}
		}
	}
	fatal(t, apply(t, p, plan.New()))
}
