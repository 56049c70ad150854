package egressip_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// handingOver is a cluster in which one address goes from n1 to n2, seen from a node; the pod ns0/p0 runs on n1.
type handingOver struct {
	*world.World
	t  *testing.T
	ip netip.Addr
}

func newHandover(t *testing.T, self, named string, holders ...string) handingOver {
	h := handingOver{compiletest.Small(self, world.SharedGateway), t, compiletest.EgressAddr(0)[0]}
	h.SetNamespace(&world.Namespace{Name: "ns0"})
	p := compiletest.Pod(0, "n1")
	h.SetPod(p)
	if self == "n1" {
		h.SetAttachment(compiletest.Attachment(p))
	}
	h.assigns(named, holders...)
	for _, n := range holders {
		h.reports(n, true)
	}
	return h
}

// assigns puts the address on a node, "" is none, and lists the holders that are not that one as leaving it.
func (h handingOver) assigns(node string, leaving ...string) {
	e := compiletest.EgressIP(0, "", h.ip)
	e.InForce[world.V4] = true
	if node != "" {
		e.Items = []world.Assignment{{Node: node, IP: h.ip}}
	}
	for _, l := range leaving {
		if l != node {
			e.Leaving = append(e.Leaving, world.Leaving{Node: l, IP: h.ip})
		}
	}
	h.SetEgressIP(e)
}

// letsGo takes all former holders off.
func (h handingOver) letsGo() {
	e := *h.EgressIP("e0")
	e.Leaving = nil
	h.SetEgressIP(&e)
}

func (h handingOver) reports(node string, holds bool) {
	held := &world.Holding{Node: node, BootID: "boot-" + node, Holds: map[string][]netip.Addr{}}
	if holds {
		held.Holds["e0"] = []netip.Addr{h.ip}
	}
	h.SetHolding(held)
}

// is compares what the node does about the address: translates, announces, is muted, passes answers on, steers its pod.
func (h handingOver) is(want string) {
	h.t.Helper()
	s := compile.Full(h.World, all.Features())
	var have []string
	for _, l := range s.Lines() {
		switch {
		case strings.HasPrefix(l, "nb NAT/egressip/e0/"):
			have = append(have, "translates")
		case strings.HasPrefix(l, "announce "):
			have = append(have, "announces")
		case strings.HasSuffix(l, ",dec_ttl,in_port"):
			rest, _, _ := strings.Cut(l, "->eth_dst")
			have = append(have, "passes on to n"+rest[len(rest)-1:])
		}
	}
	if _, muted := s.Flows.Get(plan.Flow{Bridge: "breth0", Priority: 120, Match: "arp,in_port={eth0},arp_tpa=" +
		h.ip.String()}); muted {
		have = append(have, "muted")
	}
	if row, steers := s.NB.Get(plan.RowID{Table: "Logical_Router_Policy", Name: "egressip/e0/v4"}); steers {
		have = append(have, fmt.Sprint(row.Cols["action"], row.Cols["nexthops"]))
	}
	slices.Sort(have)
	if got := strings.Join(slices.Compact(have), ", "); got != want {
		h.t.Errorf("have %q, want %q", got, want)
	}
}

// TestTwoFormerHolders: of two that leave an address the one that left last answers until the successor is ready; the
// other one stays silent.
func TestTwoFormerHolders(t *testing.T) {
	for self, want := range map[string][2]string{
		"n1": {"muted, passes on to n2, reroute[100.88.0.3], translates",
			"muted, passes on to n3, reroute[100.88.0.4], translates"},
		"n2": {"announces, passes on to n1, translates", "muted, passes on to n3, translates"},
	} {
		h := newHandover(t, self, "n2", "n1", "n2")
		h.assigns("n3", "n1", "n2")
		h.is(want[0])
		h.reports("n3", true)
		h.is(want[1])
	}
}

const toSelf, toN2 = "reroute[100.64.0.2]", "reroute[100.88.0.3]"

// TestFormerHolder: it answers until the successor is ready; then it translates in silence, and ends. If it is needed
// again meanwhile, it answers.
func TestFormerHolder(t *testing.T) {
	h := newHandover(t, "n1", "n2", "n1")
	h.is("announces, " + toSelf + ", translates")
	h.reports("n2", true)
	h.is("muted, passes on to n2, " + toN2 + ", translates")
	dead := compiletest.Node(2)
	dead.Ready = false
	h.SetNode(dead)
	h.is("announces, passes on to n2, " + toSelf + ", translates")
	h.SetNode(compiletest.Node(2))
	h.letsGo()
	h.is(toN2)
}

// TestAbandoned: what nobody takes over is translated in silence, and let go of when the status says so.
func TestAbandoned(t *testing.T) {
	h := newHandover(t, "n1", "", "n1")
	h.is("drop[], muted, translates")
	h.letsGo()
	h.is("drop[]")
}

// TestSuccessorPassesOn: as long as the former holder says that it translates, it gets the answers to its connections,
// whether it answers or not.
func TestSuccessorPassesOn(t *testing.T) {
	h := newHandover(t, "n2", "n2", "n1")
	h.is("announces, passes on to n1, translates")
	h.reports("n2", true)
	h.is("announces, passes on to n1, translates")
	h.SetTunnel("n1", world.TunnelDown)
	h.is("announces, passes on to n1, translates")
	h.reports("n1", false)
	h.is("announces, translates")
}

// TestYields: a holder that Kubernetes names yields to a machine that claims the address, and its own pods with it.
func TestYields(t *testing.T) {
	h := newHandover(t, "n1", "n1", "n1")
	c := world.EgressAddress{Object: "e0", IP: h.ip}
	h.SetYielded(c, &world.Yield{To: "n2", Draining: true})
	h.is("muted, " + toN2 + ", translates")
	h.SetYielded(c, &world.Yield{To: "n2"})
	h.is(toN2)
	h.SetOwn(&world.Holding{Node: "n1", BootID: "boot-n1", Holds: map[string][]netip.Addr{}}) // it has drained
	h.is(toN2)
	h.SetYielded(c, &world.Yield{})
	h.is("drop[]")
	h.SetYielded(c, nil)
	h.SetOwn(&world.Holding{Node: "n1", BootID: "boot-n1", Holds: map[string][]netip.Addr{"e0": {h.ip}}})
	h.is("announces, " + toSelf + ", translates")
}

// TestHoldingChangesNoRouteOfOVS: what OVS in userspace sends into tunnels it drops while it reads its routes anew, as
// it does when one of the host's main table changes: an address that comes or goes changes none.
func TestHoldingChangesNoRouteOfOVS(t *testing.T) {
	h := newHandover(t, "n1", "n1", "n1")
	for k, r := range compile.Full(h.World, all.Features()).Routes.Rows() {
		if k.Table == plan.MainTable && k.Dst == world.Single(h.ip) {
			t.Errorf("route %v in table %d: %v", k.Dst, k.Table, r)
		}
	}
}
