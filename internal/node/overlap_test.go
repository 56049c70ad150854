package node

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/world"
)

// TestHostNetworkInAClusterRange: a network of the host that overlaps a range of the cluster's is a problem of the node
// while it is there.
func TestHostNetworkInAClusterRange(t *testing.T) {
	a, _ := startLateAgent(t, &lateServer{version: 5})
	problems := func(h *world.Host) (told []string) {
		t.Helper()
		err := a.loop.DoAndWait(t.Context(), func(w *world.World) {
			a.fillMailboxes(w, w.Node("n1"), h, hosting())
			told = texts(a.last.Problems)
		})
		if err != nil {
			t.Fatal(err)
		}
		return told
	}
	ofRange := func(s string) bool { return strings.Contains(s, "overlap") }
	overlapping := compiletest.Host("n1")
	overlapping.Links[0].Addrs = append(overlapping.Links[0].Addrs, netip.MustParsePrefix("10.244.9.1/24"))
	if said := problems(overlapping); !slices.ContainsFunc(said, func(s string) bool {
		return strings.HasPrefix(s, "network 10.244.9.0/24 of link eth1 and pod subnet 10.244.0.0/16 overlap")
	}) {
		t.Errorf("the node says %q", said)
	}
	if said := problems(compiletest.Host("n1")); slices.ContainsFunc(said, ofRange) {
		t.Errorf("when the network is gone, the node says %q", said)
	}
}

// toldProblems are the problems of a report of an ordinary host's node.
func toldProblems(t *testing.T, a *Agent) (told []string) {
	t.Helper()
	err := a.loop.DoAndWait(t.Context(), func(w *world.World) {
		a.fillMailboxes(w, w.Node("n1"), compiletest.Host("n1"), hosting())
		told = texts(a.last.Problems)
	})
	if err != nil {
		t.Fatal(err)
	}
	return told
}

// TestUplinkSmallerThanPods: what the uplink does not carry of --mtu is a problem of the node.
func TestUplinkSmallerThanPods(t *testing.T) {
	a, _ := startLateAgent(t, &lateServer{version: 5})
	for mtu, want := range map[int]bool{0: false, 1400: false, 1499: true} {
		var told []string
		if err := a.loop.DoAndWait(t.Context(), func(w *world.World) {
			a.config.MTU = mtu
			a.fillMailboxes(w, w.Node("n1"), compiletest.Host("n1"), hosting())
			told = texts(a.last.Problems)
		}); err != nil {
			t.Fatal(err)
		}
		if has := strings.Contains(strings.Join(told, "; "), fmt.Sprintf("--mtu asks for %d", mtu)); has != want {
			t.Errorf("--mtu %d: the node says %q", mtu, told)
		}
	}
}
