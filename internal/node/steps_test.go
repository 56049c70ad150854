package node

import (
	"log/slog"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/listen"
	"github.com/egret-net/egret/internal/world"
)

// TestDrivenAgentAdoptsAllInterfaces: an agent that its owner drives begins with all of a pod that a previous process
// attached, its interface in its namespace's own network included.
func TestDrivenAgentAdoptsAllInterfaces(t *testing.T) {
	config := compiletest.Config(world.SharedGateway)
	left := &world.Attachment{Namespace: "shop", Name: "p", UID: "u", HostIface: "veth", MAC: "0a:58:0a:f4:01:05",
		IPs: []netip.Addr{compiletest.V4(10, 244, 1, 5)}, Further: []world.Interface{{Network: "shop_blue",
			MAC: "0a:58:0a:80:01:05", IPs: []netip.Addr{compiletest.V4(10, 128, 1, 5)}}}, EgressPaused: true}
	s := &Steps{a: newAgent("n1", config, all.ServedKinds(), slog.New(slog.DiscardHandler)), o: Surroundings{
		Node: "n1", Config: config, Host: compiletest.Host("n1"), Held: plan.New(),
		Attachments: []*world.Attachment{left}}}
	s.adoptFormer()
	s.a.holding.withFakes(listen.NewFake())
	taken, _ := s.a.loop.takeAll()
	for _, change := range taken.changes {
		change(s.a.loop.world)
	}
	s.Ask(func(w *world.World) {
		if diff := cmp.Diff(left, w.Attachment("shop/p"), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("adopted (-left +have):\n%s", diff)
		}
	})
}
