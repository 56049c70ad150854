package node

import (
	"log/slog"
	"net/netip"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// TestGivenUpAddressLingers: an address that moved is translated here a while longer, unannounced and muted; also by an agent that starts
// anew in that moment, which knows only what the node said. Its end is not taken for another move.
func TestGivenUpAddressLingers(t *testing.T) {
	ip := compiletest.EgressAddr(0)[0]
	w := compiletest.Small("n1", world.SharedGateway)
	e := compiletest.EgressIP(0, "", ip)
	e.Items = []world.Assignment{{Node: "n2", IP: ip}}
	w.SetEgressIP(e)
	for _, n := range []string{"n1", "n2"} { // the successor is ready, and the former holder has not said otherwise yet
		w.SetHolding(&world.Holding{Node: n, BootID: "boot-" + n, Holds: map[string][]netip.Addr{"e0": {ip}}})
	}
	a := newAgent("n1", w.Config, slog.New(slog.DiscardHandler))
	full := func() *plan.State { return compile.Full(w, all.Features()) }
	if len(translates(full())) != 0 || len(a.settle(w, full())) == 0 || len(translates(full())) != 1 {
		t.Fatalf("the plan translates to %v, want the address that moved", translates(full()))
	}
	if n := len(full().Announcements); n != 0 {
		t.Errorf("%d announcements of an address that another node announces", n)
	}
	if _, muted := full().Flows.Get(plan.Flow{Bridge: "breth0", Priority: 120, Match: "arp,in_port={eth0},arp_tpa=" + ip.String()}); !muted {
		t.Error("ARP for it is answered")
	}
	a.settle(w, full())
	w.SetLingering("e0", ip, false)
	if touched := a.settle(w, full()); len(touched) != 0 || len(translates(full())) != 0 {
		t.Errorf("it lingers again: %v", touched)
	}
}
