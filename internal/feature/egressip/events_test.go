package egressip_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/world"
)

// told are the reasons of a decision's Events that are Warnings.
func told(d egressip.Decision) string {
	var out []string
	for _, e := range d.Events {
		if e.Warning {
			out = append(out, e.Reason)
		}
	}
	return strings.Join(out, " ")
}

// messages are those of a decision's Events.
func messages(d egressip.Decision) []string {
	var out []string
	for _, e := range d.Events {
		out = append(out, e.Message)
	}
	return out
}

// A refusal is told of once for an address and a reason: the condition's words follow what becomes of nodes, networks
// and pods, without an Event.
func TestRefusalIsToldOnceForItsReason(t *testing.T) {
	w := newWorld()
	w.SetNode(node("n1", 2, "172.18.0.2/24"))
	w.SetEgressIP(object("e", 0, "172.18.0.33"))
	w.SetEgressIP(object("pod", 0, "10.244.1.6"))
	last := settle(w)
	lost := node("n1", 2, "172.18.0.2/24")
	lost.Ready = false
	for _, x := range []struct {
		change     func()
		name, says string
		told       string
	}{
		{func() { w.SetUnreachable("n1", world.NodeUnreachable) }, "e", "172.18.0.33 now (n1 NodeUnreachable)",
			"NoMatchingNodeFound FellBack"},
		{func() { w.SetNode(lost) }, "e", "172.18.0.33 now (n1 NodeNotReady)", ""},
		{func() { w.DelNode("n1") }, "e", "172.18.0.33 now: label a node", ""},
		{func() { w.SetNode(node("n2", 3, "172.19.0.3/24")) }, "e",
			"172.18.0.33: it is in no egress node's network (172.19.0.0/24)", "NoMatchingNodeFound"},
		{func() { w.SetNode(withSubnet(node("n3", 4, "172.20.0.3/24"), "10.244.1.0/24")) }, "e",
			"(172.19.0.0/24, 172.20.0.0/24)", ""},
		{func() { w.SetEgressIP(with(w.EgressIP("e"), "172.18.0.33", "172.18.0.3")) }, "e", "172.18.0.3: it is",
			"NoMatchingNodeFound"},
		{func() {
			w.SetPod(&world.Pod{Namespace: "ns", Name: "a", Node: "n3", IPs: object("", 0, "10.244.1.6").IPs})
		}, "pod", "is the address of pod ns/a", ""},
		{func() { w.DelPod("ns/a") }, "pod", "is in the cluster's pod subnet", ""},
	} {
		x.change()
		last = settleAfter(w, last)
		d := last[x.name]
		if c := conditionOf(d, egressip.ConditionAssigned); !strings.Contains(c.Message, x.says) {
			t.Errorf("have %q, want %q in it", c.Message, x.says)
		}
		if have := told(d); have != x.told {
			t.Errorf("%s: told %q, want %q", x.says, have, x.told)
		}
	}
}

func withSubnet(n *world.Node, subnet string) *world.Node {
	n.Subnets = append(n.Subnets, netip.MustParsePrefix(subnet))
	return n
}

// with is an EgressIP with other addresses.
func with(e *world.EgressIP, ips ...string) *world.EgressIP {
	n := *e
	n.IPs = object("", 0, ips...).IPs
	return &n
}

// A target that refuses an object is told of when that begins and when it refuses something else, whatever becomes of
// the other addresses.
func TestProblemOfANodeIsTold(t *testing.T) {
	w := newWorld()
	w.SetNode(node("n1", 2, "172.18.0.2/24"))
	w.SetEgressIP(object("e", 0, "172.18.0.33"))
	last := settle(w)
	says := func(of, problem string, holds ...string) {
		h := &world.Holding{Node: "n1", BootID: "boot", Holds: map[string][]netip.Addr{"e": object("", 0,
			holds...).IPs}}
		if problem != "" {
			h.Problems = map[string]string{of: problem}
		}
		w.SetHolding(h)
	}
	for i, x := range []struct {
		change      func()
		ready, told string
	}{
		{func() { says("e", "nb refused a") }, "n1 does not hold 172.18.0.33 yet: nb refused a", "NodeProblem"},
		{func() { says("e", "nb refused a") }, "nb refused a", ""},
		{func() { says("e", "nft refused b") }, "nft refused b", "NodeProblem"},
		{func() { says("e", "", "172.18.0.33") }, "selected pods leave with", ""},
		{func() { says("e", "nb refused a") }, "nb refused a", "NodeProblem"},
		{func() { w.SetEgressIP(with(w.EgressIP("e"), "172.18.0.33", "172.18.0.34")) }, "172.18.0.33 yet: nb refused a",
			"UnassignedRequest"},
		{func() { says("e", "nft refused b") }, "172.18.0.33 yet: nft refused b", "NodeProblem"},
		{func() { says("", "targets could not be written") }, "172.18.0.33 yet: targets could not be written", ""},
	} {
		x.change()
		last = settleAfter(w, last)
		d := last["e"]
		if c := conditionOf(d, egressip.ConditionReady); !strings.Contains(c.Message, x.ready) {
			t.Errorf("%d: have %q, want %q in it", i, c.Message, x.ready)
		}
		if have := told(d); have != x.told {
			t.Errorf("%d: told %q, want %q", i, have, x.told)
		}
		last = settleAfter(w, last)
		if again := last["e"].Events; len(again) > 0 {
			t.Errorf("%d: told again: %+v", i, again)
		}
	}
}

// What a node refuses of its own pods' rows, or a holder of others', keeps the EgressIP from being Ready, though the
// address is held.
func TestProblemOfAPodsNode(t *testing.T) {
	w := newWorld()
	w.SetNode(node("n1", 2, "172.18.0.2/24"))
	w.SetNode(node("n2", 3, "172.18.0.3/24"))
	w.SetNamespace(&world.Namespace{Name: "ns"})
	w.SetEgressIP(object("e", 0, "172.18.0.33"))
	w.SetPod(&world.Pod{Namespace: "ns", Name: "a", Node: "n2", Running: true, IPs: object("", 0, "10.244.1.6").IPs})
	last := settle(w)
	held := object("", 0, "172.18.0.33").IPs
	steers := map[string][]world.Assignment{"e": {{Node: "n1", IP: held[0]}}}
	says := func(node, problem string) {
		// what was before it refused, it still does
		h := &world.Holding{Node: node, BootID: "boot", Problems: map[string]string{}, Steers: steers}
		if problem != "" {
			h.Problems["e"] = problem
		}
		if node == "n1" {
			h.Holds = map[string][]netip.Addr{"e": held}
		}
		w.SetHolding(h)
	}
	says("n1", "")
	for i, x := range []struct {
		node, problem, ready, told string
	}{
		{"n2", "", "selected pods leave with 172.18.0.33 on n1", ""},
		{"n2", "nb refused it", "n2 does not lead its pods there over IPv4 yet: nb refused it", "NodeProblem"},
		{"n2", "", "selected pods leave with 172.18.0.33 on n1", ""},
		{"n1", "nb refused an element", "n1 holds 172.18.0.33 and does not serve all pods: nb refused an element",
			"NodeProblem"},
		{"n1", "", "selected pods leave with 172.18.0.33 on n1", ""},
	} {
		says(x.node, x.problem)
		last = settleAfter(w, last)
		d := last["e"]
		if c := conditionOf(d, egressip.ConditionReady); c.Message != x.ready ||
			(c.Status == "True") != (x.problem == "") || told(d) != x.told {
			t.Errorf("%d: Ready %s %q, told %q; want %q", i, c.Status, c.Message, told(d), x.ready)
		}
		last = settleAfter(w, last)
		if again := last["e"].Events; len(again) > 0 {
			t.Errorf("%d: told again: %+v", i, again)
		}
	}
}

// A leader of a new term tells again of nothing that the conditions show, and of what is wrong since.
func TestNewTermTellsOfWhatIsNew(t *testing.T) {
	w := newWorld()
	w.SetNode(node("n1", 2, "172.18.0.2/24"))
	w.SetEgressIP(object("e", 0, "172.18.0.33", "172.19.0.33"))
	w.SetEgressIP(object("other", 0, "172.20.0.33"))
	if have := told(settle(w)["e"]); have != "UnassignedRequest" {
		t.Errorf("at first: told %q", have)
	}
	for name, d := range settle(w) {
		if have := told(d); have != "" {
			t.Errorf("the next leader tells of %s again: %q", name, have)
		}
	}
	w.DelNode("n1")
	d := settle(w)
	if have := told(d["e"]); have != "NoMatchingNodeFound FellBack" {
		t.Errorf("the node is gone when another leads: told %q", have)
	}
	if have := told(d["other"]); have != "" {
		t.Errorf("told of another, which had no node before: %q", have)
	}
	w.DelEgressIP("other")
	again := object("other", 0, "172.20.0.33")
	again.UID = "another"
	w.SetEgressIP(again)
	if have := told(settleAfter(w, d)["other"]); have != "NoMatchingNodeFound" {
		t.Errorf("another object of the same name: told %q", have)
	}
}
