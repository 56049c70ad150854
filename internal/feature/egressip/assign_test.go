package egressip_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/world"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func newWorld() *world.World {
	subnets, err := world.ParseClusterSubnets("10.244.0.0/16/24,fd00:10:244::/48/64")
	if err != nil {
		panic(err)
	}
	return world.New("", &world.Config{
		ClusterSubnets: subnets, ServiceSubnets: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")},
		JoinSubnets: world.DefaultJoinSubnets(), TransitSubnets: world.DefaultTransitSubnets(),
	})
}

// node is an egress node that lacks nothing; primary as in "172.18.0.2/24".
func node(name string, id int, primary ...string) *world.Node {
	n := &world.Node{Name: name, ID: id, ChassisID: "c-" + name, Ready: true, BootID: "boot",
		Labels: map[string]string{world.AssignableLabel: ""}}
	for _, p := range primary {
		n.Primary = append(n.Primary, netip.MustParsePrefix(p))
		n.HostAddrs = append(n.HostAddrs, netip.MustParsePrefix(p).Addr())
		n.CIDRs = append(n.CIDRs, netip.MustParsePrefix(p))
	}
	return n
}

func object(name string, age int, ips ...string) *world.EgressIP {
	e := &world.EgressIP{Name: name, UID: name, Created: time.Unix(int64(1000-age), 0), Generation: 1,
		Namespaces: labels.Everything(), Pods: labels.Everything()}
	for _, ip := range ips {
		e.IPs = append(e.IPs, addr(ip))
	}
	return e
}

// write makes the objects say what was decided, as the controller does.
func write(w *world.World, decisions map[string]egressip.Decision) {
	for name, d := range decisions {
		e := *w.EgressIP(name)
		e.Placement, e.Conditions = d.Placement, d.Conditions
		w.SetEgressIP(&e)
	}
}

// decide is a decision at a time that does not pass.
func decide(w *world.World) map[string]egressip.Decision { return decideAt(w, time.Unix(1000, 0)) }

func decideAt(w *world.World, now time.Time) map[string]egressip.Decision {
	return decideWith(w, egressip.Beside{Now: now})
}

// decideWith is a decision beside which stands what the test says.
func decideWith(w *world.World, b egressip.Beside) map[string]egressip.Decision {
	pods := handover.NewPods()
	if b.Served, b.Shown = egressip.NewServed(pods), w.PlacementOf; b.Patience == nil {
		b.Patience = egressip.NewPatience()
	}
	if b.Exchanges == nil {
		b.Exchanges = egressip.Exchanges{}
	}
	pods.Update(w)
	return egressip.Assign(w, b)
}

// settle decides and writes.
func settle(w *world.World) map[string]egressip.Decision { return settleAfter(w, nil) }

// settleAfter decides once more in the same term, and writes.
func settleAfter(w *world.World, last map[string]egressip.Decision) map[string]egressip.Decision {
	d := decideWith(w, egressip.Beside{Last: last, Now: time.Unix(1000, 0)})
	write(w, d)
	return d
}

func hold(w *world.World, n string, holds map[string][]netip.Addr) {
	w.SetHolding(&world.Holding{Node: n, BootID: "boot", Holds: holds})
}

func items(d egressip.Decision) string {
	var s []string
	for _, i := range d.Items {
		s = append(s, i.Node+"="+i.IP.String())
	}
	return strings.Join(s, " ")
}

func conditionOf(d egressip.Decision, kind string) world.Condition {
	i := slices.IndexFunc(d.Conditions, func(c world.Condition) bool { return c.Type == kind })
	return d.Conditions[i]
}

func three(w *world.World) {
	w.SetNode(node("n1", 2, "172.18.0.2/24", "fd00:18::2/64"))
	w.SetNode(node("n2", 3, "172.18.0.3/24", "fd00:18::3/64"))
	w.SetNode(node("n3", 4, "172.18.0.4/24", "fd00:18::4/64"))
}

func TestSeedExample(t *testing.T) {
	w := newWorld()
	three(w)
	w.SetEgressIP(object("egressip-prod", 0, "172.18.0.33", "172.18.0.44"))
	d := settle(w)["egressip-prod"]
	if have, want := items(d), "n1=172.18.0.33 n2=172.18.0.44"; have != want {
		t.Fatalf("have %s, want %s", have, want)
	}
	if c := conditionOf(d, "Assigned"); c.Status != "True" || c.Generation != 1 {
		t.Errorf("Assigned: %+v", c)
	}
	if c := conditionOf(d, "Ready"); c.Status != "False" || c.Reason != egressip.ReasonWaitingForNode ||
		!strings.Contains(c.Message, "n1 does not hold 172.18.0.33") {
		t.Errorf("Ready: %+v", c)
	}
	if len(d.Events) != 2 || d.Events[0].Reason != egressip.EventAssigned {
		t.Errorf("events: %+v", d.Events)
	}
	if again := settle(w)["egressip-prod"]; len(again.Events) != 0 {
		t.Errorf("events without a change: %+v", again.Events)
	}
}

func TestReadyAndInForceFollowTheHolders(t *testing.T) {
	w := newWorld()
	three(w)
	w.SetEgressIP(object("e", 0, "172.18.0.33", "172.18.0.44"))
	settle(w)
	hold(w, "n1", map[string][]netip.Addr{"e": {addr("172.18.0.33")}})
	d := settle(w)["e"]
	if d.InForce != [2]bool{true, false} || conditionOf(d, "Ready").Status != "False" ||
		conditionOf(d, "InForce").Status != "True" {
		t.Errorf("one holder: %+v", d)
	}
	hold(w, "n2", map[string][]netip.Addr{"e": {addr("172.18.0.44")}})
	if c := conditionOf(settle(w)["e"], "Ready"); c.Status != "True" || c.Reason != egressip.ReasonHeld {
		t.Errorf("two holders: %+v", c)
	}
	w.SetHolding(&world.Holding{Node: "n1", BootID: "before",
		Holds: map[string][]netip.Addr{"e": {addr("172.18.0.33")}}})
	d = settle(w)["e"]
	if conditionOf(d, "Ready").Status != "False" || !d.InForce[world.V4] {
		t.Errorf("after a reboot of n1: %+v", d)
	}
}

func TestInForceEndsWhenNoNodeCanHost(t *testing.T) {
	w := newWorld()
	w.SetNode(node("n1", 2, "172.18.0.2/24"))
	other := node("n2", 3, "172.18.0.3/24")
	other.Labels = nil
	w.SetNode(other)
	w.SetEgressIP(object("e", 0, "172.18.0.33"))
	settle(w)
	hold(w, "n1", map[string][]netip.Addr{"e": {addr("172.18.0.33")}})
	settle(w)
	gone := node("n1", 2, "172.18.0.2/24")
	gone.Ready = false
	w.SetNode(gone)
	d := settle(w)["e"]
	if len(d.Items) != 0 || d.InForce[world.V4] {
		t.Fatalf("have %+v", d)
	}
	if c := conditionOf(d, "Assigned"); !strings.Contains(c.Message, "n1 NodeNotReady") ||
		c.Reason != egressip.ReasonNoAssignableNode {
		t.Errorf("Assigned: %+v", c)
	}
	if e := d.Events; len(e) != 3 || e[0].Reason != egressip.EventReleased || e[0].Cause != handover.CauseNotReady ||
		e[1].Reason != egressip.EventNoNode || e[2].Reason != egressip.EventFallback {
		t.Errorf("events: %+v", e)
	}
}

// A holder that lives but has lost its node's status must not put an object without any assignment in force.
func TestHeldButNotAssignableIsNotInForce(t *testing.T) {
	w := newWorld()
	n := node("n1", 2, "172.18.0.2/24")
	n.Labels = nil
	w.SetNode(n)
	hold(w, "n1", map[string][]netip.Addr{"e": {addr("172.18.0.33")}})
	w.SetEgressIP(object("e", 0, "172.18.0.33"))
	if d := settle(w)["e"]; d.InForce[world.V4] || len(d.Items) != 0 {
		t.Errorf("have %+v", d)
	}
}

// TestSecondaryNetworks: the longest subnet of all egress nodes decides, and what nodes say of their links.
func TestSecondaryNetworks(t *testing.T) {
	w := newWorld()
	for i, more := range []string{"", "172.18.5.2/24", "172.18.5.3/24"} {
		n := node(fmt.Sprint("n", i+1), i+2, fmt.Sprintf("172.18.0.%d/16", i+2))
		if more != "" {
			n.CIDRs = append(n.CIDRs, netip.MustParsePrefix(more))
		}
		w.SetNode(n)
	}
	w.SetEgressIP(object("e", 0, "172.18.5.50", "172.18.6.50"))
	fault := func(node, why string) {
		w.SetHolding(&world.Holding{Node: node, BootID: "boot",
			Faults: map[netip.Prefix]string{netip.MustParsePrefix("172.18.5.0/24"): why}})
	}
	for _, x := range []struct {
		change func()
		items  string
		event  string
	}{
		{func() {}, "n2=172.18.5.50 n1=172.18.6.50", "172.18.5.50 is assigned to n2"},
		{func() { fault("n2", "link eth1 is down: set it up") }, "n3=172.18.5.50 n1=172.18.6.50",
			"172.18.5.50 moves from n2 (LinkFault: link eth1 is down: set it up) to n3"},
		{func() { fault("n3", "no carrier") }, "n1=172.18.6.50",
			"no node can host 172.18.5.50 now (n2: link eth1 is down: set it up, n3: no carrier): mend one of these, " +
				"or label another node of its network " + world.AssignableLabel},
		{func() { w.DelHolding("n3") }, "n3=172.18.5.50 n1=172.18.6.50", "172.18.5.50 is assigned to n3"},
	} {
		x.change()
		d := settle(w)["e"]
		if have := items(d); have != x.items || !slices.Contains(messages(d), x.event) {
			t.Errorf("have %s, want %s; events %+v, want %q", have, x.items, d.Events, x.event)
		}
	}
}

func TestMoves(t *testing.T) {
	for cause, change := range map[string]func(w *world.World, n *world.Node){
		egressip.CauseUnlabelled: func(w *world.World, n *world.Node) { n.Labels = nil; w.SetNode(n) },
		handover.CauseUnselected: func(w *world.World, _ *world.Node) {
			selects(w, "e", "zone!=a")
			zoned(w, "n1", "a")
		},
		handover.CauseNotReady: func(w *world.World, n *world.Node) { n.Ready = false; w.SetNode(n) },
		handover.CauseDeleting: func(w *world.World, n *world.Node) { n.Deleting = true; w.SetNode(n) },
		handover.CauseDeleted:  func(w *world.World, n *world.Node) { w.DelNode(n.Name) },
		handover.CauseNotSetUp: func(w *world.World, n *world.Node) { n.ChassisID = ""; w.SetNode(n) },
		handover.CauseUnreachable: func(w *world.World,
			n *world.Node) {
			w.SetUnreachable(n.Name, world.NodeUnreachable)
		},
		handover.CauseAgentAway: func(w *world.World, n *world.Node) { w.SetUnreachable(n.Name, world.AgentAway) },
		handover.CauseCordoned:  func(w *world.World, n *world.Node) { n.Cordoned = true; w.SetNode(n) },
		egressip.CauseNetwork: func(w *world.World, n *world.Node) {
			n.Primary = []netip.Prefix{netip.MustParsePrefix("172.19.0.2/24")}
			n.CIDRs = n.Primary
			w.SetNode(n)
		},
	} {
		t.Run(cause, func(t *testing.T) {
			w := newWorld()
			three(w)
			w.SetEgressIP(object("e", 0, "172.18.0.33", "172.18.0.44"))
			settle(w)
			change(w, node("n1", 2, "172.18.0.2/24", "fd00:18::2/64"))
			d := settle(w)["e"]
			if have, want := items(d), "n3=172.18.0.33 n2=172.18.0.44"; have != want {
				t.Errorf("have %s, want %s", have, want)
			}
			if e := d.Events; len(e) != 1 || e[0].Reason != egressip.EventMoved || e[0].Cause != cause || e[0].Warning {
				t.Errorf("events: %+v", e)
			}
		})
	}
}

// Nodes whose agents are away go on translating: what no other node can take stays with them. They are given what has
// no node only where the agents of all are away, of which TestAgentsAwayTogether is.
func TestAgentsAwayKeepWhatNobodyElseTakes(t *testing.T) {
	w := newWorld()
	three(w)
	w.SetEgressIP(object("e", 0, "172.18.0.33", "172.18.0.44"))
	settle(w)
	for _, n := range []string{"n1", "n2", "n3"} {
		w.SetUnreachable(n, world.AgentAway)
	}
	d := settle(w)
	if have, want := items(d["e"]), "n1=172.18.0.33 n2=172.18.0.44"; have != want || len(d["e"].Events) > 0 {
		t.Errorf("have %s, want %s; events %+v", have, want, d["e"].Events)
	}
	w.SetUnreachable("n3", "")
	if have, want := items(settle(w)["e"]), "n3=172.18.0.33 n2=172.18.0.44"; have != want {
		t.Errorf("one is back: have %s, want %s", have, want)
	}
}

// Nodes that the controller cannot tell about keep what they have, and are given nothing new: neither a new address,
// nor one that has to leave its node; and people are told why.
func TestNodesNotAnsweringKeepWhatTheyHave(t *testing.T) {
	w := newWorld()
	three(w)
	w.SetEgressIP(object("e", 0, "172.18.0.33", "172.18.0.44"))
	settle(w)
	for _, n := range []string{"n1", "n2", "n3"} {
		w.SetNotAnswering(n, true)
	}
	w.SetEgressIP(object("late", -1, "172.18.0.55"))
	d := settle(w)
	if have, want := items(d["e"]), "n1=172.18.0.33 n2=172.18.0.44"; have != want || len(d["e"].Events) > 0 {
		t.Errorf("have %s, want %s; events %+v", have, want, d["e"].Events)
	}
	assigned := conditionOf(d["late"], "Assigned")
	if have := items(d["late"]); have != "" || !strings.Contains(assigned.Message, "n3 NodeNotAnswering") {
		t.Errorf("a node that does not answer was given %q; condition %+v", have, assigned)
	}
	w.SetUnreachable("n1", world.NodeUnreachable)
	w.SetNotAnswering("n1", false)
	if have, want := items(settle(w)["e"]), "n2=172.18.0.44"; have != want {
		t.Errorf("a node is dead, and the others are not answering: have %s, want %s", have, want)
	}
	w.SetNotAnswering("n3", false)
	d = settle(w)
	if have, want := items(d["e"])+" "+items(d["late"]), "n3=172.18.0.33 n2=172.18.0.44 n3=172.18.0.55"; have != want {
		t.Errorf("one has answered: have %s, want %s", have, want)
	}
}

// A node that was lost only now keeps what no other can take, so that its pods send nothing with its own address when
// it is back at once.
func TestLostNodeKeepsWhatNobodyTakes(t *testing.T) {
	w := newWorld()
	three(w)
	w.SetEgressIP(object("e", 0, "172.18.0.33", "172.18.0.44", "172.18.0.55"))
	settle(w)
	w.SetUnreachable("n1", world.NodeUnreachable)
	w.SetNotAnswering("n1", true)
	d := settle(w)
	have, want := items(d["e"]), "n1=172.18.0.33 n2=172.18.0.44 n3=172.18.0.55"
	if have != want || len(d["e"].Events) > 0 {
		t.Errorf("lost: have %s, want %s; events %+v", have, want, d["e"].Events)
	}
	w.SetNotAnswering("n1", false)
	if have, want := items(settle(w)["e"]), "n2=172.18.0.44 n3=172.18.0.55"; have != want {
		t.Errorf("lost for long: have %s, want %s", have, want)
	}
}

// Reachable again: what moved stays where it is.
func TestReachableAgainMovesNothing(t *testing.T) {
	w := newWorld()
	three(w)
	w.SetEgressIP(object("e", 0, "172.18.0.33"))
	settle(w)
	w.SetUnreachable("n1", world.NodeUnreachable)
	if have, want := items(settle(w)["e"]), "n2=172.18.0.33"; have != want {
		t.Fatalf("have %s, want %s", have, want)
	}
	w.SetUnreachable("n1", "")
	if d := settle(w)["e"]; items(d) != "n2=172.18.0.33" || len(d.Events) != 0 {
		t.Errorf("have %s, events %+v", items(d), d.Events)
	}
}

func TestLateLabelCompletesAndMovesNothing(t *testing.T) {
	w := newWorld()
	w.SetNode(node("n2", 3, "172.18.0.3/24"))
	late := node("n1", 2, "172.18.0.2/24")
	late.Labels = nil
	w.SetNode(late)
	w.SetEgressIP(object("a", 3, "172.18.0.31", "172.18.0.32"))
	w.SetEgressIP(object("b", 2, "172.18.0.33"))
	d := settle(w)
	if items(d["a"]) != "n2=172.18.0.31" || items(d["b"]) != "n2=172.18.0.33" {
		t.Fatalf("one node: %s, %s", items(d["a"]), items(d["b"]))
	}
	if c := conditionOf(d["a"], "Assigned"); c.Reason != egressip.ReasonPartiallyAssigned ||
		!strings.Contains(c.Message, "172.18.0.32") {
		t.Errorf("Assigned: %+v", c)
	}
	if e := d["a"].Events; len(e) != 2 || e[1].Reason != egressip.EventUnassigned || !e[1].Warning {
		t.Errorf("events: %+v", e)
	}
	w.SetNode(node("n1", 2, "172.18.0.2/24"))
	d = settle(w)
	if items(d["a"]) != "n2=172.18.0.31 n1=172.18.0.32" || items(d["b"]) != "n2=172.18.0.33" {
		t.Errorf("two nodes: %s, %s", items(d["a"]), items(d["b"]))
	}
}

func TestDualStackPrefersTwoNodesAndTakesOne(t *testing.T) {
	w := newWorld()
	w.SetNode(node("n1", 2, "172.18.0.2/24", "fd00:18::2/64"))
	w.SetEgressIP(object("e", 0, "172.18.0.33", "fd00:18::33"))
	if have := items(decide(w)["e"]); have != "n1=172.18.0.33 n1=fd00:18::33" {
		t.Errorf("one node: %s", have)
	}
	three(w)
	if have := items(decide(w)["e"]); have != "n1=172.18.0.33 n2=fd00:18::33" {
		t.Errorf("three nodes: %s", have)
	}
}

// The address that only one node can host gets it, whatever its place in the list.
func TestAddressesOfDifferentNetworks(t *testing.T) {
	w := newWorld()
	w.SetNode(node("n1", 2, "172.18.0.2/25"))
	w.SetNode(node("n2", 3, "172.18.0.3/24"))
	w.SetEgressIP(object("e", 0, "172.18.0.33", "172.18.0.200"))
	if have := items(decide(w)["e"]); have != "n1=172.18.0.33 n2=172.18.0.200" {
		t.Errorf("have %s", have)
	}
	w.SetEgressIP(object("e", 0, "172.18.0.200", "172.18.0.33"))
	if have := items(decide(w)["e"]); have != "n2=172.18.0.200 n1=172.18.0.33" {
		t.Errorf("have %s", have)
	}
}

// TestOfAFamilyThatPodsHaveNot: an address that no pod could leave with is refused for that, not for want of a node.
func TestOfAFamilyThatPodsHaveNot(t *testing.T) {
	w := crowded()
	w.Config.ClusterSubnets = w.Config.ClusterSubnets[:1]
	w.SetEgressIP(object("e", 0, "172.18.0.33", "fd00:18::33"))
	d := decide(w)["e"]
	c := conditionOf(d, "Assigned")
	if len(d.Items) != 1 || !strings.Contains(c.Message, "no addresses of that family") {
		t.Errorf("%v, condition %+v", d.Items, c)
	}
}

func TestRefusals(t *testing.T) {
	for ip, want := range map[string]struct{ reason, event, text string }{
		"172.18.0.3":  {egressip.ReasonConflict, egressip.EventConflict, "172.18.0.3 is an address of node n2"},
		"172.18.0.70": {egressip.ReasonConflict, egressip.EventConflict, "an address of node n4"},
		"172.18.0.1":  {egressip.ReasonConflict, egressip.EventConflict, "the gateway of node n1"},
		"10.244.1.5":  {egressip.ReasonConflict, egressip.EventConflict, "the address of pod default/web"},
		"10.244.1.6":  {egressip.ReasonConflict, egressip.EventConflict, "the cluster's pod subnet 10.244.0.0/16"},
		"172.18.0.80": {egressip.ReasonConflict, egressip.EventConflict, "the cluster IP of Service default/svc"},
		"172.18.0.250": {egressip.ReasonConflict, egressip.EventConflict,
			"172.18.0.250 is the API server's, by the endpoints of Service default/kubernetes"},
		"fd00:18::250": {egressip.ReasonConflict, egressip.EventConflict,
			"fd00:18::250 is the API server's, by the endpoints of Service default/kubernetes"},
		"10.96.0.200": {egressip.ReasonConflict, egressip.EventConflict, "the cluster's service subnet 10.96.0.0/16"},
		"100.64.0.9":  {egressip.ReasonConflict, egressip.EventConflict, "the cluster's join subnet"},
		"100.88.0.9":  {egressip.ReasonConflict, egressip.EventConflict, "the cluster's transit subnet"},
		"172.18.0.90": {egressip.ReasonConflict, egressip.EventConflict,
			"the load-balancer IP of Service default/svc"},
		"172.18.0.0":   {egressip.ReasonConflict, egressip.EventConflict, "the network address of 172.18.0.0/24"},
		"172.18.0.255": {egressip.ReasonConflict, egressip.EventConflict, "the broadcast address of 172.18.0.0/24"},
		"fd00:18::":    {egressip.ReasonConflict, egressip.EventConflict, "the network address of fd00:18::/64"},
		"10.10.10.10": {egressip.ReasonNoNodeInNetwork, egressip.EventNoNode,
			"in no egress node's network (172.18.0.0/24)"},
		"172.30.0.9":  {egressip.ReasonNoAssignableNode, egressip.EventNoNode, "n5 NodeNotReady"},
		"172.18.0.50": {egressip.ReasonConflict, egressip.EventUnsupported, "belongs to the older EgressIP older"},
		"127.0.0.1":   {egressip.ReasonInvalidEgressIP, egressip.EventInvalid, "cannot be a source outside the node"},
		"2001:db8::33": {egressip.ReasonNoNodeInNetwork, egressip.EventNoNode,
			"in no egress node's network (fd00:18::/64)"},
	} {
		t.Run(ip, func(t *testing.T) {
			w := crowded()
			w.SetEgressIP(object("e", 1, ip))
			w.SetEgressIP(object("young", 0, "172.18.0.60"))
			all := decide(w)
			d := all["e"]
			c := conditionOf(d, "Assigned")
			if len(d.Items) != 0 || c.Reason != want.reason || !strings.Contains(c.Message, want.text) ||
				!strings.Contains(c.Message, ": ") {
				t.Errorf("condition: %+v", c)
			}
			if len(d.Events) != 1 || d.Events[0].Reason != want.event || !d.Events[0].Warning ||
				d.Events[0].Message != c.Message {
				t.Errorf("events: %+v", d.Events)
			}
			if len(all["young"].Items) != 1 {
				t.Errorf("another object does not work: %+v", all["young"])
			}
		})
	}
}

// TestUsersKeepNoAddress: an address that only spec.externalIPs name, which any user writes, is free.
func TestUsersKeepNoAddress(t *testing.T) {
	w := crowded()
	w.SetEgressIP(object("e", 1, "172.18.0.91"))
	if d := decide(w)["e"]; len(d.Items) != 1 {
		t.Errorf("no node gets it: %+v", conditionOf(d, "Assigned"))
	}
}

// crowded has something of everything that an egress IP must not be.
func crowded() *world.World {
	w := newWorld()
	three(w)
	n1 := node("n1", 2, "172.18.0.2/24", "fd00:18::2/64")
	n1.Gateways = []netip.Addr{addr("172.18.0.1")}
	w.SetNode(withSubnet(n1, "10.244.1.0/24"))
	n4 := node("n4", 5, "172.18.0.5/24")
	n4.Labels, n4.HostAddrs, n4.Gateways = nil, []netip.Addr{addr("172.18.0.70")}, n1.Gateways
	w.SetNode(n4)
	n5 := node("n5", 6, "172.30.0.5/24")
	n5.Ready = false
	w.SetNode(n5)
	w.SetPod(&world.Pod{Namespace: "default", Name: "web", Node: "n1", IPs: []netip.Addr{addr("10.244.1.5")}})
	w.SetPod(&world.Pod{Namespace: "default", Name: "done", IPs: []netip.Addr{addr("10.244.1.6")}, Completed: true})
	w.SetService(&world.Service{Namespace: "default", Name: "svc", ClusterIPs: []netip.Addr{addr("172.18.0.80")},
		LoadBalancerIPs: []netip.Addr{addr("172.18.0.90")}, ExternalIPs: []netip.Addr{addr("172.18.0.91")}})
	w.SetService(apiServers("172.18.0.250", "fd00:18::250"))
	w.SetEgressIP(object("older", 9, "172.18.0.50"))
	return w
}

// apiServers is the Service that API servers keep, with their addresses.
func apiServers(ips ...string) *world.Service {
	s := &world.Service{Namespace: "default", Name: "kubernetes", ClusterIPs: []netip.Addr{addr("10.96.0.1")},
		Ports: []world.ServicePort{{Name: "https", Protocol: "tcp", Port: 443}}}
	for _, ip := range ips {
		e := world.Endpoint{AddrPort: netip.AddrPortFrom(addr(ip), 6443), Ready: true, Serving: true}
		s.Ports[0].Endpoints = append(s.Ports[0].Endpoints, e)
	}
	return s
}

func TestProblemsOfTheObject(t *testing.T) {
	w := newWorld()
	three(w)
	e := object("e", 0, "172.18.0.33")
	e.Problems = []string{`spec.egressIPs[1]: "web" is not an IP address`}
	e.SelectorProblem = "spec.podSelector: bad key"
	w.SetEgressIP(e)
	w.SetEgressIP(object("empty", 0))
	all := settle(w)
	d := all["e"]
	if items(d) != "n1=172.18.0.33" || conditionOf(d, "Assigned").Reason != egressip.ReasonPartiallyAssigned {
		t.Errorf("have %+v", d)
	}
	if c := conditionOf(d, "Ready"); c.Reason != egressip.ReasonInvalidSelector {
		t.Errorf("Ready: %+v", c)
	}
	if len(d.Events) != 3 || d.Events[1].Reason != egressip.EventInvalid ||
		d.Events[2].Reason != egressip.ReasonInvalidSelector {
		t.Errorf("events: %+v", d.Events)
	}
	if c := conditionOf(all["empty"], "Assigned"); c.Status != "False" || c.Reason == "" {
		t.Errorf("no address: %+v", c)
	}
	if again := settle(w)["e"].Events; len(again) != 0 {
		t.Errorf("events without a change: %+v", again)
	}
}

// TestNamesTheNodeThatCannot: of two addresses and two nodes, one of which takes none, the condition says which and
// why; that another has to be labelled, only where all are well.
func TestNamesTheNodeThatCannot(t *testing.T) {
	for want, change := range map[string]func(*world.World, *world.Node){
		"and others cannot (n2 NodeCordoned): mend": func(_ *world.World, n *world.Node) { n.Cordoned = true },
		"and others cannot (n2 NodeNotReady): mend": func(_ *world.World, n *world.Node) { n.Ready = false },
		"and others cannot (n2 NodeUnreachable): mend": func(w *world.World, n *world.Node) {
			w.SetUnreachable(n.Name, world.NodeUnreachable)
		},
		"one address of an EgressIP: label another": func(_ *world.World, n *world.Node) { n.Labels = nil },
	} {
		w := newWorld()
		w.SetNode(node("n1", 2, "172.18.0.2/24"))
		w.SetNode(node("n2", 3, "172.18.0.3/24"))
		w.SetEgressIP(object("e", 0, "172.18.0.33", "172.18.0.44"))
		settle(w)
		n2 := node("n2", 3, "172.18.0.3/24")
		change(w, n2)
		w.SetNode(n2)
		if c := conditionOf(settle(w)["e"], "Assigned"); !strings.Contains(c.Message, want) {
			t.Errorf("have %q, want %q", c.Message, want)
		}
	}
}

func TestNoLabelledNode(t *testing.T) {
	w := newWorld()
	w.SetEgressIP(object("e", 0, "172.18.0.33"))
	if c := conditionOf(decide(w)["e"], "Assigned"); !strings.Contains(c.Message,
		"label a node of its network "+world.AssignableLabel) {
		t.Errorf("have %+v", c)
	}
}

// big is 1,000 EgressIPs of two addresses and 500 nodes, all egress nodes, with 10,000 pods.
func big() *world.World {
	w := newWorld()
	for i := range 500 {
		w.SetNode(node(fmt.Sprintf("n%03d", i), i+2, fmt.Sprintf("172.18.%d.%d/16", i/200, 2+i%200)))
	}
	for i := range 10000 {
		w.SetPod(&world.Pod{Namespace: "ns", Name: fmt.Sprint(i),
			IPs: []netip.Addr{world.Nth(netip.MustParsePrefix("10.244.0.0/16"), i)}})
	}
	for i := range 1000 {
		w.SetEgressIP(object(fmt.Sprintf("e%04d", i), 1000-i, fmt.Sprintf("172.18.%d.%d", 100+i/200, 1+i%200),
			fmt.Sprintf("172.18.%d.%d", 150+i/200, 1+i%200)))
	}
	return w
}

func BenchmarkAssignBurst(b *testing.B) {
	w := big()
	for b.Loop() {
		decide(w)
	}
}

func BenchmarkAssignSettled(b *testing.B) {
	w := big()
	holds := map[string]map[string][]netip.Addr{}
	for name, d := range settle(w) {
		for _, i := range d.Items {
			if holds[i.Node] == nil {
				holds[i.Node] = map[string][]netip.Addr{}
			}
			holds[i.Node][name] = append(holds[i.Node][name], i.IP)
		}
	}
	for n, h := range holds {
		hold(w, n, h)
	}
	settle(w)
	for b.Loop() {
		decide(w)
	}
}

// TestMessagesFit: whatever a node says, and however much, the API takes each condition (metav1.Condition: 32768
// characters), and none has a line break.
func TestMessagesFit(t *testing.T) {
	w := newWorld()
	three(w)
	w.SetEgressIP(object("e", 0, "172.18.0.33"))
	settle(w)
	long := &world.Holding{Node: "n1", BootID: "boot", Problems: map[string]string{"e": strings.Repeat("no\n",
		100<<10)}, Conflicts: map[string][]world.Conflict{}}
	for range 10000 {
		long.Conflicts["e"] = append(long.Conflicts["e"], world.Conflict{IP: addr("172.18.0.33"),
			MAC: compiletest.HardwareAddr("02:00:00:00:00:09")})
	}
	w.SetHolding(long)
	d := settle(w)["e"]
	for _, c := range d.Conditions {
		if n := utf8.RuneCountInString(c.Message); n == 0 || n > 32768 || strings.Contains(c.Message, "\n") {
			t.Errorf("condition %s has %d characters: %.100q", c.Type, n, c.Message)
		}
	}
	if ready := conditionOf(d, "Ready"); ready.Status != "False" || !strings.HasPrefix(ready.Message,
		"n1 does not hold 172.18.0.33 yet: no no") {
		t.Errorf("Ready: %.100q", ready.Message)
	}
}

// TestAddressConflict: a claim that a holder receives is a condition and one Event, until none comes any longer; what
// it said before a reboot is nothing.
func TestAddressConflict(t *testing.T) {
	w := newWorld()
	three(w)
	w.SetEgressIP(object("e", 0, "172.18.0.33"))
	settle(w)
	says := func(boot string, mac ...string) egressip.Decision {
		h := &world.Holding{Node: "n1", BootID: boot, Holds: map[string][]netip.Addr{"e": {addr("172.18.0.33")}},
			Conflicts: map[string][]world.Conflict{}}
		for _, m := range mac {
			h.Conflicts["e"] = append(h.Conflicts["e"], world.Conflict{IP: addr("172.18.0.33"),
				MAC: compiletest.HardwareAddr(m)})
		}
		w.SetHolding(h)
		return settle(w)["e"]
	}
	conflicts := func(c world.Condition) bool { return c.Type == "AddressConflict" }
	if d := says("boot"); slices.ContainsFunc(d.Conditions, conflicts) {
		t.Errorf("without a conflict: %+v", d.Conditions)
	}
	d := says("boot", "02:00:00:00:00:09")
	if c := conditionOf(d, "AddressConflict"); c.Status != "True" ||
		!strings.Contains(c.Message, "172.18.0.33 on n1 is also answered for by 02:00:00:00:00:09") {
		t.Errorf("condition: %+v", c)
	}
	if len(d.Events) != 1 || !d.Events[0].Warning || d.Events[0].Reason != egressip.EventAddressInUse {
		t.Errorf("events: %+v", d.Events)
	}
	if d = says("boot", "02:00:00:00:00:09"); len(d.Events) != 0 {
		t.Errorf("told again: %+v", d.Events)
	}
	n3, liar := *w.Said("n3"), *w.Said("n3")
	n3.UplinkMAC = compiletest.HardwareAddr("02:00:00:00:00:09")
	liar.Name, liar.ID, liar.Primary, liar.UplinkMAC = "z", 9, nil, n3.UplinkMAC
	w.SetNode(&n3)
	w.SetNode(&liar)
	if c := conditionOf(says("boot", "02:00:00:00:00:09"), "AddressConflict"); !strings.Contains(c.Message,
		"answered for by 02:00:00:00:00:09 (node n3)") {
		t.Errorf("another node names n3's hardware address: %+v", c)
	}
	if c := conditionOf(says("before", "02:00:00:00:00:09"), "AddressConflict"); c.Status != "False" {
		t.Errorf("after a reboot: %+v", c)
	}
	says("boot", "02:00:00:00:00:09")
	if d = says("boot"); conditionOf(d, "AddressConflict").Status != "False" || len(d.Events) != 0 {
		t.Errorf("after the conflict: %+v", d)
	}
}

// TestYoungerIsToldOfTheOlder: who asks for an address that an older EgressIP asks for is told of that, whatever the
// address is refused to the older for, now or once its node is gone.
func TestYoungerIsToldOfTheOlder(t *testing.T) {
	w := newWorld()
	w.SetNode(node("n1", 2, "172.18.0.201/24"))
	unlabel(w, "n1")
	older := object("older", 1, "172.18.0.201")
	older.Items = []world.Assignment{{Node: "gone", IP: addr("172.18.0.201")}}
	w.SetEgressIP(older)
	w.SetEgressIP(object("younger", 0, "172.18.0.201"))
	for range 2 {
		if c := conditionOf(settle(w)["younger"], "Assigned"); !strings.HasPrefix(c.Message,
			"172.18.0.201 belongs to the older EgressIP older") {
			t.Errorf("Assigned: %+v", c)
		}
	}
}
