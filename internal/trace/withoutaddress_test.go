package trace_test

import (
	"net/netip"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// TestUplinkWithoutAddress: where the uplink has no address of one family, though it has a way out of that (a router's
// advertisement, before duplicates were looked for; DHCP that is late), nothing of that family leaves with a pod's
// address, in either mode, and the other family is served. In local gateway mode it is the kernel that finds a source,
// or drops.
func TestUplinkWithoutAddress(t *testing.T) {
	to := [2]netip.Addr{netip.MustParseAddr("198.51.100.7"), netip.MustParseAddr("2001:db8::7")}
	for _, mode := range []world.GatewayMode{world.SharedGateway, world.LocalGateway} {
		for _, lost := range []world.Family{world.V4, world.V6} {
			c := newCluster(mode)
			h := compiletest.Host("n1")
			h.Primary, h.Addrs, h.Links = h.Primary[1-lost:2-lost], h.Addrs[1-lost:2-lost], nil
			h.Gateways[world.V6] = netip.MustParseAddr("fe80::1")
			c["n1"].SetHost(h)
			now := c.read(t)
			for f, src := range compiletest.PodIPs(0, 1) {
				out := false
				for _, e := range now.Walk(trace.Packet{Src: src, Dst: to[f], Proto: "tcp", DstPort: 80}) {
					out = out || e.Kind == trace.Outside
					if e.Kind == trace.Outside && e.Src == src {
						t.Errorf("%s by %v", e, e.Steps)
					}
				}
				if mode == world.SharedGateway && out != (world.Family(f) != lost) {
					t.Errorf("%s, without %s: %s leaves: %v", mode, lost, to[f], out)
				}
			}
		}
	}
}
