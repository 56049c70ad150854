package node

import (
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/world"
)

// TestStranded: a node that is named for an address and does not lead its own pods to it says so, once it lasts, with the reason, until that goes.
func TestStranded(t *testing.T) {
	ip := compiletest.EgressAddr(0)[0]
	w := compiletest.Small("n1", world.SharedGateway)
	e := compiletest.EgressIP(0, "", ip)
	e.Items, e.InForce[world.V4] = []world.Assignment{{Node: "n1", IP: ip}}, true
	w.SetEgressIP(e)
	s := &stranded{log: slog.New(slog.DiscardHandler)}
	now := time.Now()
	after := func(d time.Duration, want string) {
		t.Helper()
		now = now.Add(d)
		s.look(w, map[netip.Addr]string{ip: "e0"}, now)
		have := strings.Join(texts(s.problems()), "\n")
		if (want == "") != (have == "") || !strings.Contains(have, want) || want != "" && !strings.HasPrefix(have, "egressip/e0: ") {
			t.Errorf("problems are %q, want %q", have, want)
		}
	}
	after(0, "")
	after(strandedFor-time.Second, "")
	after(time.Second, "does not have the flows")
	w.SetOwn(&world.Holding{Node: "n1", BootID: "before", Holds: map[string][]netip.Addr{"e0": {ip}}})
	after(time.Second, "booted as boot-n1, and this is before")
	w.SetYielded(world.EgressAddress{EgressIP: "e0", IP: ip}, "")
	after(time.Second, "given way")
	w.DelYielded(world.EgressAddress{EgressIP: "e0", IP: ip})
	w.SetOwn(&world.Holding{Node: "n1", BootID: "boot-n1", Holds: map[string][]netip.Addr{"e0": {ip}}})
	after(time.Second, "")
	w.SetOwn(&world.Holding{Node: "n1", BootID: "boot-n1"})
	after(time.Second, "")
}
