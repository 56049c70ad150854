package egressip_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/world"
)

func nodesBy(text string) world.NodeSelector { return world.NodeSelector{Labels: selector(text)} }

// unreadable is a selector that cannot be read.
var unreadable = world.NodeSelector{Problem: "spec.egressNodeSelector: no such operator: mend it"}

// unreadables make a selector of an EgressIP one that cannot be read, by its field.
var unreadables = map[string]func(*world.EgressIP){
	"spec.egressNodeSelector": func(e *world.EgressIP) { e.Nodes = unreadable },
	"spec.trafficSelector": func(e *world.EgressIP) {
		e.TrafficProblem, e.TrafficUnknown = "spec.trafficSelector: no such key: mend it", true
	},
}

func problemOf(e *world.EgressIP) string { return e.Nodes.Problem + e.TrafficProblem }

// cannotRead makes a selector of an EgressIP one that cannot be read.
func cannotRead(w *world.World, name, field string) {
	e := *w.EgressIP(name)
	unreadables[field](&e)
	w.SetEgressIP(&e)
}

// selects gives an EgressIP a selector of nodes. All others can be read.
func selects(w *world.World, name, text string) {
	selectsNodes(w, name, nodesBy(text))
	e := *w.EgressIP(name)
	e.TrafficProblem, e.TrafficUnknown = "", false
	w.SetEgressIP(&e)
}

func selectsNodes(w *world.World, name string, s world.NodeSelector) {
	e := *w.EgressIP(name)
	e.Nodes = s
	w.SetEgressIP(&e)
}

// zoned labels an egress node with its zone.
func zoned(w *world.World, name, zone string) {
	n := *w.Node(name)
	n.Labels = map[string]string{world.AssignableLabel: "", "zone": zone}
	w.SetNode(&n)
}

// inZones are three egress nodes, n1 and n2 in zone a.
func inZones(w *world.World) {
	three(w)
	zoned(w, "n1", "a")
	zoned(w, "n2", "a")
	zoned(w, "n3", "b")
}

// TestSelectedNodesHost: what waits goes to a node that begins to match, and nothing else moves; what is on one that no
// longer matches goes to another that does, which is told of with its cause, and leaves it when that one is ready.
func TestSelectedNodesHost(t *testing.T) {
	w := newWorld()
	inZones(w)
	e := object("e", 1, "172.18.0.33", "172.18.0.34")
	e.Nodes = nodesBy("zone=b")
	w.SetEgressIP(e)
	w.SetEgressIP(object("all", 0, "172.18.0.40"))
	for _, x := range []struct {
		name           string
		change         func()
		items, leaving string
		event          string
	}{
		{"one matches", func() {}, "n3=172.18.0.33", "", "172.18.0.33 is assigned to n3"},
		{"another begins to match", func() { zoned(w, "n2", "b") }, "n3=172.18.0.33 n2=172.18.0.34", "",
			"172.18.0.34 is assigned to n2"},
		{"a third does", func() { zoned(w, "n1", "b") }, "n3=172.18.0.33 n2=172.18.0.34", "", ""},
		{"one no longer matches", func() { zoned(w, "n3", "a") }, "n1=172.18.0.33 n2=172.18.0.34", "n3=172.18.0.33",
			"172.18.0.33 moves from n3 (NodeNotSelected) to n1"},
		{"the selector is another", func() { selects(w, "e", "zone in (a,c)") }, "n3=172.18.0.33", "n1=172.18.0.33",
			"172.18.0.34 is no longer on n2 (NodeNotSelected)"},
		{"it matches all", func() { selects(w, "e", "") }, "n3=172.18.0.33 n2=172.18.0.34", "",
			"172.18.0.34 is assigned to n2"},
	} {
		x.change()
		all := settle(w)
		d := all["e"]
		if have := items(d); have != x.items || !slices.Contains(append(messages(d), ""), x.event) {
			t.Errorf("%s: have %s, want %s; events %q", x.name, have, x.items, messages(d))
		}
		if have := leaving(d); x.leaving != "" && !strings.Contains(have, x.leaving) {
			t.Errorf("%s: leaving %q, want %q", x.name, have, x.leaving)
		}
		if have := items(all["all"]); have != "n1=172.18.0.40" {
			t.Errorf("%s: an EgressIP without a selector is on %s", x.name, have)
		}
	}
}

// andMatches ends an advice for an EgressIP that selects zone b.
const andMatches = "a node of its network k8s.ovn.org/egress-assignable, and so that spec.egressNodeSelector " +
	"(zone=b) matches it"

// TestNoSelectedNode: the condition names the selector, and says what to do.
func TestNoSelectedNode(t *testing.T) {
	for _, x := range []struct {
		change             func(*world.World)
		ip, selector, says string
	}{
		{func(*world.World) {}, "172.18.0.33", "zone=c,rack in (r1,r2)", "no node can host 172.18.0.33 now: " +
			"spec.egressNodeSelector (rack in (r1,r2),zone=c) matches no egress node: label one of its network so " +
			"that it matches, or change the selector"},
		{func(w *world.World) { unlabel(w, "n1"); unlabel(w, "n2"); unlabel(w, "n3") }, "172.18.0.33", "zone=b",
			"no node can host 172.18.0.33 now: label " + andMatches},
		{func(w *world.World) { w.SetUnreachable("n3", world.NodeUnreachable) }, "172.18.0.33", "zone=b",
			"no node can host 172.18.0.33 now (n3 NodeUnreachable): mend one of these, or label another node of its " +
				"network" + strings.TrimPrefix(andMatches, "a node of its network")},
		{func(w *world.World) { w.SetNode(node("n4", 5, "172.30.0.5/24")) }, "172.30.0.33", "zone=b",
			"no node can host 172.30.0.33: it is in the network of no egress node that spec.egressNodeSelector " +
				"(zone=b) matches (172.18.0.0/24): use an address of one, or label " + andMatches},
		{func(*world.World) {}, "172.18.0.33", "rack in (" + strings.Repeat("r", 63) + "),a=" +
			strings.Repeat("a", 63) + ",b=" + strings.Repeat("b", 63) + ",c=" + strings.Repeat("c", 63) + ",zone=z",
			"...) matches no egress node"},
	} {
		w := newWorld()
		inZones(w)
		x.change(w)
		e := object("e", 0, x.ip)
		e.Nodes = nodesBy(x.selector)
		w.SetEgressIP(e)
		d := settle(w)["e"]
		if c := conditionOf(d, "Assigned"); len(d.Items) != 0 || !strings.Contains(c.Message, x.says) {
			t.Errorf("on %q: %s\nwant %s", items(d), c.Message, x.says)
		}
		if have := told(d); have != egressip.EventNoNode {
			t.Errorf("%s: told %q", x.says, have)
		}
	}
}

// TestUnreadableSelector: while a selector of nodes or of traffic cannot be read, addresses stay where they are and are
// given to nobody else, and what is in force stays so: no packet leaves rather than one with a node's address. Other
// objects go on. Once it can be read, all is as it says.
func TestUnreadableSelector(t *testing.T) {
	for field := range unreadables {
		t.Run(field, func(t *testing.T) { unreadableSelector(t, field) })
	}
}

func unreadableSelector(t *testing.T, field string) {
	w := newWorld()
	inZones(w)
	w.SetEgressIP(object("e", 1, "172.18.0.33", "172.18.0.34"))
	settle(w)
	hold(w, "n1", map[string][]netip.Addr{"e": {addr("172.18.0.33")}})
	hold(w, "n2", map[string][]netip.Addr{"e": {addr("172.18.0.34")}})
	settle(w)
	w.SetEgressIP(object("new", 0, "172.18.0.50"))
	cannotRead(w, "new", field)
	w.SetEgressIP(object("other", 0, "172.18.0.60"))
	problem := problemOf(w.EgressIP("new"))
	for _, x := range []struct {
		name    string
		change  func()
		items   string
		inForce bool
		ready   string // its message
	}{
		{"it cannot be read", func() { cannotRead(w, "e", field) }, "n1=172.18.0.33 n2=172.18.0.34", true, problem},
		{"a holder is gone", func() { w.DelNode("n1") }, "n2=172.18.0.34", true, problem},
		{"the last one is", func() { unlabel(w, "n2") }, "", true, problem},
		{"nodes are well again", func() { inZones(w) }, "", true, problem},
		{"it matches none", func() { selects(w, "e", "zone=c") }, "", false, "now: spec.egressNodeSelector (zone=c)"},
		{"it matches one", func() { selects(w, "e", "zone=b") }, "n3=172.18.0.33", false, "172.18.0.34 now, because"},
	} {
		x.change()
		all := settle(w)
		d := all["e"]
		if items(d) != x.items || d.InForce[world.V4] != x.inForce {
			t.Errorf("%s: have %q, in force %t; want %q", x.name, items(d), d.InForce[world.V4], x.items)
		}
		if c := conditionOf(d, "Ready"); c.Status != "False" || !strings.Contains(c.Message, x.ready) {
			t.Errorf("%s: Ready: %+v", x.name, c)
		}
		if drops := conditionOf(d, "Fallback").Reason == egressip.ReasonDrop; drops != (x.items == "" && x.inForce) {
			t.Errorf("%s: Fallback: %+v", x.name, conditionOf(d, "Fallback"))
		}
		if items(all["new"]) != "" || len(all["other"].Items) != 1 {
			t.Errorf("%s: a new one is on %q, another on %q", x.name, items(all["new"]), items(all["other"]))
		}
	}
}

// TestUnreadableSelectorIsTold: once, as an Event and in the conditions, with what is dropped meanwhile.
func TestUnreadableSelectorIsTold(t *testing.T) {
	for field := range unreadables {
		t.Run(field, func(t *testing.T) { unreadableSelectorIsTold(t, field) })
	}
}

func unreadableSelectorIsTold(t *testing.T, field string) {
	w := newWorld()
	inZones(w)
	e := object("e", 0, "172.18.0.33")
	e.InForce[world.V4] = true
	w.SetEgressIP(e)
	cannotRead(w, "e", field)
	problem := problemOf(w.EgressIP("e"))
	last := settle(w)
	d := last["e"]
	if have := told(d); have != "NoMatchingNodeFound InvalidSelector" {
		t.Errorf("told %q", have)
	}
	for kind, want := range map[string]world.Condition{
		"Assigned": {Status: "False", Reason: "InvalidSelector", Message: "172.18.0.33 gets no node: " + problem},
		"Ready":    {Status: "False", Reason: "InvalidSelector", Message: problem},
		"InForce": {Status: "True", Reason: "Held",
			Message: "selected pods leave over IPv4 with an egress IP or not at all"},
		"Fallback": {Status: "True", Reason: "Drop", Message: "no IPv4 address of it has a node: what selected pods " +
			"send outside over IPv4 is dropped until " + field + " can be read; it has no IPv6 address: " +
			"over IPv6 selected pods leave with their node's address, unless another EgressIP serves them"},
	} {
		if c := conditionOf(d, kind); c.Status != want.Status || c.Reason != want.Reason || c.Message != want.Message {
			t.Errorf("%s: %+v", kind, c)
		}
	}
	if d = settleAfter(w, last)["e"]; len(d.Events) > 0 {
		t.Errorf("told again: %+v", d.Events)
	}
}

func drawZone(t *rapid.T) string { return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "zone") }

// drawSelector is mostly none.
func drawSelector(t *rapid.T) world.NodeSelector {
	return rapid.SampledFrom([]world.NodeSelector{{}, {}, {}, nodesBy(""), nodesBy("zone=a"), nodesBy("zone!=a"),
		nodesBy("zone in (a,b)"), nodesBy("!zone"), unreadable}).Draw(t, "egress node selector")
}

func isEgressNode(n *world.Node) bool {
	_, labelled := n.Labels[world.AssignableLabel]
	return labelled
}

// mayBeOn says whether an object's selector lets an address be on a node: if it cannot be read, only where it was.
func mayBeOn(e *world.EgressIP, n *world.Node, i world.Assignment) bool {
	return e.Nodes.SelectsNode(n) || e.Nodes.Problem != "" && slices.Contains(e.Items, i)
}

// TestSelectorMovesOnlyWhatMust: whatever becomes of a selector or of a node's labels, no address is on a node that
// does not match, what can stay stays on nodes that are Ready, and a former holder with a successor is leaving.
func TestSelectorMovesOnlyWhatMust(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawObjects(t)
		w := o.world(1)
		settle(w)
		before := settle(w)
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			changeZones(t, w, o)
		}
		decided := decide(w)
		checkRules(t, w, decided)
		for name, d := range before {
			e := w.EgressIP(name)
			for _, i := range d.Items {
				n := w.Node(i.Node)
				stays := isEgressNode(n) && (e.Nodes.Problem != "" || e.Nodes.SelectsNode(n))
				if is := slices.Contains(decided[name].Items, i); is != stays && (is || n.Ready) {
					t.Fatalf("%s: %v stays: want %t; now on %s", name, i, stays, items(decided[name]))
				}
				if moved := isAssigned(decided[name], i.IP); moved && !stays && !leaves(decided[name], i) &&
					!isGiven(decided[name], i.Node, world.FamilyOf(i.IP)) {
					t.Fatalf("%s: %v is let go of before its successor is ready: %+v", name, i, decided[name])
				}
			}
		}
	})
}

// changeZones changes a node's zone or egress label, or an object's selector.
func changeZones(t *rapid.T, w *world.World, o objects) {
	if len(o.nodes) > 0 && rapid.Bool().Draw(t, "of a node") {
		n := *w.Node(rapid.SampledFrom(o.nodes).Draw(t, "changed node").Name)
		n.Labels = map[string]string{"zone": drawZone(t)}
		if rapid.IntRange(0, 3).Draw(t, "labelled") > 0 {
			n.Labels[world.AssignableLabel] = ""
		}
		w.SetNode(&n)
	} else if len(o.egressIPs) > 0 {
		selectsNodes(w, rapid.SampledFrom(o.egressIPs).Draw(t, "changed object").Name, drawSelector(t))
	}
}

func isAssigned(d egressip.Decision, ip netip.Addr) bool {
	return slices.ContainsFunc(d.Items, func(i world.Assignment) bool { return i.IP == ip })
}

func leaves(d egressip.Decision, i world.Assignment) bool {
	return slices.ContainsFunc(d.Leaving, func(l world.Leaving) bool { return l.Node == i.Node && l.IP == i.IP })
}

// isGiven says whether a node has another address of the same family by a decision: it cannot go on with the former.
func isGiven(d egressip.Decision, node string, f world.Family) bool {
	return slices.ContainsFunc(d.Items, func(i world.Assignment) bool {
		return i.Node == node && world.FamilyOf(i.IP) == f
	})
}
