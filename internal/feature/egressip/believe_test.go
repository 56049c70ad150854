package egressip_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// TestWordsEvictNothing: what another node or a Service says that it has is refused to a new EgressIP, and taken from
// none that has a node, also when that node goes. What one node alone calls its gateway is refused to none, where
// others have it in a network of theirs.
func TestWordsEvictNothing(t *testing.T) {
	ip := addr("172.18.0.33")
	for name, say := range map[string]func(*world.World){
		"host-cidrs": func(w *world.World) {
			n := node("n3", 4, "172.18.0.4/24", "fd00:18::4/64")
			n.HostAddrs = []netip.Addr{addr("172.18.0.4"), ip}
			w.SetNode(n)
		},
		"primary": func(w *world.World) { w.SetNode(node("n3", 4, "172.18.0.33/24", "fd00:18::4/64")) },
		"gateway": func(w *world.World) {
			n := node("n3", 4, "172.18.0.4/24", "fd00:18::4/64")
			n.Gateways = []netip.Addr{ip}
			w.SetNode(n)
		},
		"broadcast": func(w *world.World) {
			n := node("n3", 4, "172.18.0.4/24", "fd00:18::4/64")
			n.CIDRs = []netip.Prefix{netip.MustParsePrefix("172.18.0.32/30"), netip.MustParsePrefix("172.18.0.33/27"),
				netip.MustParsePrefix("172.18.0.4/24")}
			w.SetNode(n)
		},
		"Service": func(w *world.World) {
			w.SetService(&world.Service{Namespace: "a", Name: "b", LoadBalancerIPs: []netip.Addr{ip}})
		},
	} {
		w := newWorld()
		three(w)
		w.SetEgressIP(object("e", 0, "172.18.0.33"))
		before := settle(w)["e"].Items
		say(w)
		if after := settle(w)["e"].Items; !slices.Equal(before, after) || len(after) != 1 {
			t.Errorf("%s: %v became %v", name, before, after)
		}
		if before[0].Node != "n3" {
			w.DelNode(before[0].Node)
			if after := settle(w)["e"].Items; len(after) != 1 {
				t.Errorf("%s: without the node that had it: %v", name, after)
			}
		}
		if name == "broadcast" {
			continue // the first address of these networks, and not their last
		}
		w.DelEgressIP("e")
		w.Pass(time.Unix(1000, 0))
		w.Pass(time.Unix(1010, 0)) // long enough for the node that had it, and never said so
		w.SetEgressIP(object("late", 0, "172.18.0.33"))
		d := settle(w)["late"]
		want := egressip.ReasonConflict
		if name == "gateway" {
			want = egressip.ReasonAssigned
		}
		if c := conditionOf(d, "Assigned"); c.Reason != want {
			t.Errorf("%s: of a new EgressIP: %+v, want %s", name, c, want)
		}
	}
}

// TestPlacedIsNoNodes: an egress IP that has a node is no node's address by that another node says so; given up, it is.
func TestPlacedIsNoNodes(t *testing.T) {
	w := compiletest.Small("n1", world.SharedGateway)
	ip := compiletest.EgressAddr(0)[0]
	liar := compiletest.Node(3)
	liar.Primary = []netip.Prefix{netip.PrefixFrom(ip, 24)}
	e := compiletest.EgressIP(0, "", ip)
	e.Items = []world.Assignment{{Node: "n2", IP: ip}}
	m := compile.NewMemo(all.Features())
	m.Update(w)
	in := func() bool {
		_, is := m.State.SetElems.Get(plan.SetElem{Set: "node-ips.v4", Addr: ip.String()})
		return is
	}
	w.SetEgressIP(e)
	w.SetNode(liar)
	m.Update(w)
	if in() {
		t.Error("an egress IP that has a node counts as a node's address")
	}
	w.DelEgressIP("e0")
	m.Update(w)
	if !in() {
		t.Error("an address that no EgressIP has does not count as the node's")
	}
}

// TestPodsAddressesAreTheirNodes: what a pod's status says counts where it is in the subnets of the pod's node, as soon
// as these are known, and nowhere else.
func TestPodsAddressesAreTheirNodes(t *testing.T) {
	w := compiletest.Small("n1", world.SharedGateway)
	ip := compiletest.EgressAddr(0)[0]
	w.SetNamespace(&world.Namespace{Name: "ns0"})
	e := compiletest.EgressIP(0, "", ip)
	e.Items, e.InForce[world.V4] = []world.Assignment{{Node: "n1", IP: ip}}, true
	w.SetEgressIP(e)
	m := compile.NewMemo(all.Features())
	m.Update(w)
	in := func(a netip.Addr) bool {
		_, set := m.State.SetElems.Get(plan.SetElem{Set: "egressip/e0/pods.v4", Addr: a.String()})
		_, source := m.State.Sources.Get(plan.Source{Router: "GR_n1", Pod: a})
		if set != source {
			t.Errorf("%s: in the set %v, among the sources %v", a, set, source)
		}
		return set
	}
	victim, own := compiletest.PodIPs(7, 2)[0], compiletest.PodIPs(3, 3)[0]
	p := compiletest.Pod(3, "n3")
	p.IPs = []netip.Addr{victim, own, compiletest.Primary(2), netip.MustParseAddr("203.0.113.9")}
	w.SetPod(p)
	m.Update(w)
	if in(victim) || in(p.IPs[2]) || in(p.IPs[3]) || !in(own) {
		t.Errorf("victim %v, node %v, outside %v, own %v", in(victim), in(p.IPs[2]), in(p.IPs[3]), in(own))
	}
	n := *compiletest.Node(3)
	n.Subnets = nil
	w.SetNode(&n)
	m.Update(w)
	if in(own) {
		t.Error("it counts though nothing is known of its node's subnets")
	}
	w.SetNode(compiletest.Node(3))
	m.Update(w)
	if !in(own) {
		t.Error("it does not count once its node's subnets are known")
	}
	host := compiletest.Pod(3, "n3")
	host.HostNetwork, host.IPs = true, []netip.Addr{own}
	w.SetPod(host)
	m.Update(w)
	if in(own) || len(w.PodIPs(host, ref.DefaultNetwork)) != 0 || len(w.Selecting(host)) != 0 {
		t.Error("a pod in the host's network is selected")
	}
	for _, l := range m.State.Lines() {
		if slices.Contains([]string{"set egressip-guarded-pods.v4 has " + own.String()}, l) {
			t.Errorf("a pod in the host's network: %s", l)
		}
	}
}

// TestAddressTaken: of two pods of a node that say that they have one address, the node tells of the later one, until
// it ends or says something else; a pod of another node tells nothing here.
func TestAddressTaken(t *testing.T) {
	w := compiletest.Small("n1", world.SharedGateway)
	m := compile.NewMemo(all.Features())
	m.Update(w)
	told := func() (out []string) {
		for p := range m.State.Problems.Rows() {
			if p.Reason == world.ReasonAddressTaken {
				out = append(out, p.Object.String()+": "+p.Message)
			}
		}
		return out
	}
	first, second := compiletest.Pod(0, "n1"), compiletest.Pod(1, "n1")
	w.SetPod(first)
	m.Update(w)
	second.IPs = first.IPs[:1]
	w.SetPod(second)
	m.Update(w)
	want := "says that it has address " + first.IPs[0].String() + ", which is pod " + first.Key() + "'s"
	if have := told(); len(have) != 1 || !strings.HasPrefix(have[0], "Pod/"+second.Key()) ||
		!strings.Contains(have[0], want) {
		t.Errorf("told %q, want one of pod %s: %s", have, second.Key(), want)
	}
	ends := *second
	ends.Terminating = true
	w.SetPod(&ends)
	m.Update(w)
	if have := told(); len(have) > 0 {
		t.Errorf("of one that ends it told %q", have)
	}
	w.SetPod(second)
	m.Update(w)
	w.DelPod(first.Key())
	m.Update(w)
	if have := told(); len(have) > 0 {
		t.Errorf("the address is its own now, and it told %q", have)
	}
}
