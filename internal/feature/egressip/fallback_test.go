package egressip_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/world"
)

// What selected pods leave with when no node can host is a condition, and an Event when it begins or becomes the other
// choice.
func TestFallback(t *testing.T) {
	w := newWorld()
	w.SetNode(node("n1", 2, "172.18.0.2/24"))
	w.SetEgressIP(object("e", 0, "172.18.0.33"))
	if c := conditionOf(settle(w)["e"], egressip.ConditionFallback); c.Status != "False" ||
		c.Reason != egressip.ReasonHosted {
		t.Errorf("with a node: %+v", c)
	}
	w.DelNode("n1")
	d := settle(w)["e"]
	if c := conditionOf(d, egressip.ConditionFallback); c.Status != "True" || c.Reason != egressip.ReasonNodeIP ||
		!strings.Contains(c.Message, "leave over IPv4 with their node's address") {
		t.Errorf("without: %+v", c)
	}
	if e := d.Events[len(d.Events)-1]; e.Reason != egressip.EventFallback || !e.Warning {
		t.Errorf("events: %+v", d.Events)
	}
	if d := settle(w)["e"]; len(d.Events) > 0 {
		t.Errorf("told again: %+v", d.Events)
	}
	e := *w.EgressIP("e")
	e.DropWhenUnassigned = true
	w.SetEgressIP(&e)
	d = settle(w)["e"]
	if c := conditionOf(d, egressip.ConditionFallback); c.Status != "True" || c.Reason != egressip.ReasonDrop ||
		!strings.Contains(c.Message, "dropped") {
		t.Errorf("annotated: %+v", c)
	}
	if len(d.Events) != 1 || d.Events[0].Reason != egressip.EventFallback {
		t.Errorf("events: %+v", d.Events)
	}
}

// TestFallbackIsConfirmed: no packet is called dropped that a node may still send with its own address.
func TestFallbackIsConfirmed(t *testing.T) {
	w := newWorld()
	w.SetNode(node("n1", 2, "172.18.0.2/24"))
	w.SetNode(node("n2", 3, "172.18.0.3/24"))
	e := object("e", 0, "172.18.0.33")
	e.DropWhenUnassigned = true
	w.SetEgressIP(e)
	w.SetNamespace(&world.Namespace{Name: "ns"})
	settle(w)
	for _, p := range []*world.Pod{running("p1", "n1"), running("p2", "n2")} {
		w.SetPod(p)
	}
	unlabelled := func(name string, id int, ip string) *world.Node {
		n := node(name, id, ip)
		n.Labels = nil
		return n
	}
	w.SetNode(unlabelled("n1", 2, "172.18.0.2/24"))
	w.SetNode(unlabelled("n2", 3, "172.18.0.3/24"))
	drops := []world.Assignment{{IP: addr("0.0.0.0")}}
	for _, x := range []struct {
		node string
		says []world.Assignment
		want string
	}{
		{"n2", []world.Assignment{{Node: "n1", IP: addr("172.18.0.33")}}, "WaitingForNode no IPv4 address of it has " +
			"a node: what selected pods send outside over IPv4 is to be dropped, as annotation egret.k8s.ovn.org/when-" +
			"unassigned=drop asks; not confirmed by n1, n2, where"},
		{"n1", drops, "WaitingForNode no IPv4 address of it has a node: what selected pods send outside over IPv4 is to be " +
			"dropped, as annotation egret.k8s.ovn.org/when-unassigned=drop asks; not confirmed by n2, where"},
		{"n2", drops, "Drop no IPv4 address of it has a node: what selected pods send outside over IPv4 is dropped, as"},
	} {
		w.SetHolding(&world.Holding{Node: x.node, BootID: "boot", Steers: map[string][]world.Assignment{"e": x.says}})
		d := settle(w)["e"]
		c := conditionOf(d, egressip.ConditionFallback)
		if have := c.Reason + " " + c.Message; c.Status != "True" || !strings.HasPrefix(have, x.want) {
			t.Errorf("%s says %v: said %s, want %s", x.node, x.says, have, x.want)
		}
	}
}

// running is a pod of namespace ns.
func running(name, node string) *world.Pod {
	return &world.Pod{Namespace: "ns", Name: name, UID: name, Node: node, Running: true,
		IPs: []netip.Addr{addr("10.244.1.9")}}
}

// An annotation that cannot be read is told of once, and in the condition as long as it stands, whether or not a node
// hosts; who leads next does not tell of it again.
func TestUnreadableWhenUnassigned(t *testing.T) {
	w := newWorld()
	w.SetNode(node("n1", 2, "172.18.0.2/24"))
	e := object("e", 0, "172.18.0.33")
	e.DropWhenUnassigned, e.UnassignedProblem = true, `"dorp" is not "drop"`
	w.SetEgressIP(e)
	d := settle(w)["e"]
	if c := conditionOf(d, egressip.ConditionFallback); c.Status != "False" ||
		!strings.HasSuffix(c.Message, `; "dorp" is not "drop"`) {
		t.Errorf("condition %+v", c)
	}
	last := d.Events[len(d.Events)-1]
	if last.Reason != egressip.EventInvalid || !strings.Contains(last.Message, "dorp") {
		t.Errorf("events: %+v", d.Events)
	}
	if again := settle(w)["e"].Events; len(again) != 0 {
		t.Errorf("told again: %+v", again)
	}
}

// A family without a node falls back though the other has one.
func TestFallbackOfOneFamily(t *testing.T) {
	w := newWorld()
	w.SetNode(node("n1", 2, "172.18.0.2/24"))
	w.SetEgressIP(object("e", 0, "172.18.0.33", "fd00:18::33"))
	c := conditionOf(settle(w)["e"], egressip.ConditionFallback)
	if c.Status != "True" || !strings.HasPrefix(c.Message, "no IPv6 address of it has a node") {
		t.Errorf("have %+v", c)
	}
}

// A family of the cluster that the spec has no address of is none of its business, with or without the annotation, and
// it says so.
func TestFallbackSpeaksOfAFamilyThatIsNotAskedFor(t *testing.T) {
	const open4, open6 = "; it has no IPv4 address: over IPv4 selected pods leave with their node's address, unless " +
		"another EgressIP serves them",
		"; it has no IPv6 address: over IPv6 selected pods leave with their node's address, unless another EgressIP " +
			"serves them"
	for _, c := range []struct {
		subnets, want string
		ips           []string
	}{
		{"10.244.0.0/16/24,fd00:10:244::/48/64", open6, []string{"172.18.0.33"}},
		{"10.244.0.0/16/24,fd00:10:244::/48/64", open4, []string{"fd00:18::33"}},
		{"10.244.0.0/16/24,fd00:10:244::/48/64", "", []string{"172.18.0.33", "fd00:18::33"}},
		{"10.244.0.0/16/24", "", []string{"172.18.0.33"}},
	} {
		for _, drop := range []bool{false, true} {
			w := newWorld()
			w.Config.ClusterSubnets, _ = world.ParseClusterSubnets(c.subnets)
			w.SetNode(node("n1", 2, "172.18.0.2/24", "fd00:18::2/64"))
			e := object("e", 0, c.ips...)
			e.DropWhenUnassigned = drop
			w.SetEgressIP(e)
			want := "in every family that it has addresses of, one has a node" + c.want
			if have := conditionOf(settle(w)["e"], egressip.ConditionFallback); have.Message != want ||
				have.Status != "False" {
				t.Errorf("%v: have %+v, want %s", c.ips, have, want)
			}
			w.DelNode("n1")
			if have := conditionOf(settle(w)["e"], egressip.ConditionFallback); !strings.HasSuffix(have.Message,
				c.want) || have.Status != "True" {
				t.Errorf("%v without a node: have %+v, want %s", c.ips, have, c.want)
			}
		}
	}
}

func TestFallbackWithoutAddress(t *testing.T) {
	w := newWorld()
	w.SetEgressIP(object("e", 0))
	if c := conditionOf(settle(w)["e"], egressip.ConditionFallback); c.Status != "True" ||
		c.Reason != egressip.ReasonNodeIP {
		t.Errorf("have %+v", c)
	}
}

// A dual-stack object prefers two nodes for its two families, whatever their load, and uses one where there is only
// one.
func TestDualStackPrefersTwoNodes(t *testing.T) {
	one := func(w *world.World) { w.SetNode(node("n1", 2, "172.18.0.2/24", "fd00:18::2/64")) }
	for name, c := range map[string]struct {
		nodes func(*world.World)
		want  string
	}{
		"two": {func(w *world.World) { one(w); w.SetNode(node("n2", 3, "172.18.0.3/24", "fd00:18::3/64")) },
			"n1=172.18.0.33 n2=fd00:18::33"},
		"one": {one, "n1=172.18.0.33 n1=fd00:18::33"},
		"the only one of a family": {func(w *world.World) { one(w); w.SetNode(node("n2", 3, "172.18.0.3/24")) },
			"n2=172.18.0.33 n1=fd00:18::33"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			c.nodes(w)
			w.SetEgressIP(object("e", 0, "172.18.0.33", "fd00:18::33"))
			if have := items(settle(w)["e"]); have != c.want {
				t.Errorf("have %s, want %s", have, c.want)
			}
		})
	}
}

// The preference is stronger than balance, and moves nothing later: a second node that comes late gets nothing of what
// has a place.
func TestDualStackPreferenceIsSticky(t *testing.T) {
	w := newWorld()
	w.SetNode(node("n1", 2, "172.18.0.2/24", "fd00:18::2/64"))
	w.SetEgressIP(object("e", 0, "172.18.0.33", "fd00:18::33"))
	settle(w)
	w.SetNode(node("n2", 3, "172.18.0.3/24", "fd00:18::3/64"))
	if have := items(settle(w)["e"]); have != "n1=172.18.0.33 n1=fd00:18::33" {
		t.Errorf("have %s", have)
	}
	for i, ip := range []string{"172.18.0.34", "172.18.0.35", "172.18.0.36"} {
		w.SetEgressIP(object(ip, -1-i, ip))
	}
	settle(w) // n2 has as many as n1 and more
	w.SetEgressIP(object("f", -9, "172.18.0.37", "fd00:18::37"))
	d := settle(w)["f"]
	if len(d.Items) != 2 || d.Items[0].Node == d.Items[1].Node {
		t.Errorf("have %s", items(d))
	}
}
