package egressservice_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/egressservice"
	"github.com/egret-net/egret/internal/world"
)

// lasts lets seconds pass, with a decision in each, and returns all that was told of.
func (c *cluster) lasts(seconds int) string {
	var told []string
	for range seconds {
		if said := c.decides(); said != "" {
			told = append(told, said)
		}
	}
	return strings.Join(told, " ")
}

// cordoned takes nodes out of use.
func (c *cluster) cordoned(nodes ...int) {
	for _, i := range nodes {
		c.node(i, func(n *world.Node) { n.Cordoned = true })
	}
}

// unreached says why nodes do not count as reachable.
func (c *cluster) unreached(why world.Unreachability, nodes ...string) {
	for _, node := range nodes {
		c.set(func(w *world.World) { w.SetUnreachable(node, why) })
	}
}

// TestHostThatNeverHolds: people are told after 5 s, and after 10 s another node is the host, long before the former
// one stops translating. It is given nothing new afterwards while others can take it.
func TestHostThatNeverHolds(t *testing.T) {
	c := settled(t)
	c.cordoned(1)
	c.decides()
	c.report("n1", "n3")
	if told := c.lasts(4); told != "" {
		t.Errorf("told of %q at first", told)
	}
	if told := c.lasts(3); told != "NodeProblem" {
		t.Errorf("told of %q after 5 s", told)
	}
	if said := c.says("ns0/s0", egressservice.ConditionReady); !strings.Contains(said,
		"fc00:f853:ccd:e793::64 yet, for more than 5s: see whether egret-node, ovn-northd and ovn-controller run") {
		t.Errorf("said %s", said)
	}
	if told := c.lasts(5); told != "Moved" {
		t.Errorf("told of %q after 10 s", told)
	}
	c.is(`"n3" leaving [n1 n2] label [n1] Ready=False WaitingForNode`)
	if said := c.says("ns0/s0", egressservice.ConditionReady); !strings.Contains(said, "neither did n2") {
		t.Errorf("said %s", said)
	}
	c.report("n1", "n3")
	c.decides()
	c.report("n1", "n3")
	c.lasts(20) // n2 leads its pods to n1 as before
	if s := c.w.EgressService("ns0/s0"); s.Host != "n3" || len(s.Leaving) > 0 {
		t.Errorf("host %s, leaving %v", s.Host, s.Leaving)
	}
	c.node(1, func(n *world.Node) { n.Cordoned = false })
	c.add("ns1", "next", 0)
	c.decides()
	if have := c.assigned("ns1/next"); have != "n1 Assigned" {
		t.Errorf("the next one: %s", have)
	}
}

// TestNobodyElseHolds: where no other node can be it, a host that does not hold stays, and so it is where none does:
// the host does not go to and fro. When it holds, nothing is left of it.
func TestNobodyElseHolds(t *testing.T) {
	for name, others := range map[string][]int{"one": {1, 3}, "two": {1}} {
		t.Run(name, func(t *testing.T) {
			c := settled(t)
			c.cordoned(others...)
			if moves := strings.Count(c.lasts(40), "Moved"); moves != 3-len(others) {
				t.Errorf("%d moves", moves)
			}
			host := c.w.EgressService("ns0/s0").Host
			for range 60 {
				if c.decides(); c.w.EgressService("ns0/s0").Host != host {
					t.Fatalf("the host was %s and is %s", host, c.w.EgressService("ns0/s0").Host)
				}
			}
			c.report("n1", "n2", "n3")
			c.lasts(2)
			c.is(`"` + host + `" leaving [] label [` + host + `] Ready=True Held`)
		})
	}
}

// TestAnotherComesInTime: a host that is too late and stays is replaced when another node can be it.
func TestAnotherComesInTime(t *testing.T) {
	c := settled(t)
	c.cordoned(1, 3)
	c.lasts(20)
	if host := c.w.EgressService("ns0/s0").Host; host != "n2" {
		t.Fatalf("host %s", host)
	}
	c.node(3, func(*world.Node) {})
	if told := c.decides(); told != "Moved" {
		t.Errorf("told of %q", told)
	}
	if host := c.w.EgressService("ns0/s0").Host; host != "n3" {
		t.Errorf("host %s", host)
	}
}

// TestLateBecauseOfAnother: a node that was too late with the addresses of another EgressService becomes the host when
// nobody asks it for these any more.
func TestLateBecauseOfAnother(t *testing.T) {
	c := settled(t)
	c.cordoned(1)
	c.add("ns1", "other", 0)
	c.lasts(20)
	if a, b := c.assigned("ns0/s0"), c.assigned("ns1/other"); a != "n2 Assigned" || b != "n3 Assigned" {
		t.Fatalf("neither can: %s, %s", a, b)
	}
	c.set(func(w *world.World) { w.DelEgressService("ns1/other") })
	c.decides()
	if have := c.assigned("ns0/s0"); have != "n3 Assigned" {
		t.Errorf("n3 is not late any more: %s", have)
	}
}

// TestNotAnswering: a node of which the controller cannot tell whether it lives does not become the host, and stays it.
func TestNotAnswering(t *testing.T) {
	answers := func(c *cluster, yes bool, nodes ...string) {
		for _, node := range nodes {
			c.set(func(w *world.World) { w.SetNotAnswering(node, !yes) })
		}
	}
	c := settled(t)
	answers(c, false, "n1", "n2")
	c.decides()
	c.is(`"n1" leaving [] label [n1] Ready=True Held`)
	c.cordoned(1)
	c.decides()
	c.is(`"n3" leaving [n1] label [n1] Ready=False WaitingForNode`)
	c.set(func(w *world.World) { w.DelNode("n3") })
	c.decides()
	c.is(`"" leaving [] label [] Ready=False NoMatchingNode`)
	if said := c.says("ns0/s0", egressservice.ConditionAssigned); !strings.Contains(said, "n2 (NodeNotAnswering)") {
		t.Errorf("said %s", said)
	}
	answers(c, true, "n2")
	c.decides()
	c.is(`"n2" leaving [] label [n2] Ready=False WaitingForNode`)
}

// TestSilentPodsNode: a node with pods that does not confirm, and does not say what keeps it, is waited for no longer
// than 30 s.
func TestSilentPodsNode(t *testing.T) {
	c := newCluster(t)
	c.decides()
	c.report("n1")
	c.lasts(29)
	c.is(`"n1" leaving [] label [n1] Ready=False WaitingForNode`)
	c.lasts(4)
	c.is(`"n1" leaving [] label [n1] Ready=True Held`)
	if said := c.says("ns0/s0", egressservice.ConditionReady); !strings.Contains(said, "n2 has not confirmed for 30s") {
		t.Errorf("said %s", said)
	}
	c.report("n2")
	c.lasts(2)
	c.is(`"n1" leaving [] label [n1] Ready=True Held`)
	if said := c.says("ns0/s0", egressservice.ConditionReady); strings.Contains(said, "n2") {
		t.Errorf("said %s", said)
	}
}

// TestOnlyNodeNotReady: the only node that can be the host stays it while Kubernetes calls it NotReady and nobody has
// found it dead; it goes where another can take over, or where it is dead.
func TestOnlyNodeNotReady(t *testing.T) {
	lone := func(t *testing.T) *cluster {
		c := settled(t)
		c.node(1, func(n *world.Node) { n.Labels = map[string]string{"color": "green"} })
		c.object(func(s *world.EgressService) { s.Nodes = green() })
		c.decides()
		return c
	}
	c := lone(t)
	c.node(1, func(n *world.Node) { n.Ready = false })
	c.lasts(60)
	c.is(`"n1" leaving [] label [n1] Ready=True Held`)
	c.node(1, func(*world.Node) {})
	c.decides()
	c.is(`"n1" leaving [] label [n1] Ready=True Held`)
	c.node(1, func(n *world.Node) { n.Ready = false })
	c.unreached(world.NodeUnreachable, "n1")
	if told := c.decides(); told != "Released NoMatchingNode FellBack" {
		t.Errorf("told of %q", told)
	}
	c.is(`"" leaving [] label [] Ready=False NoMatchingNode`)
	c.unreached("", "n1")
	c.decides()
	c.is(`"" leaving [] label [] Ready=False NoMatchingNode`) // it is given nothing new

	c = lone(t)
	c.unreached(world.AgentAway, "n1")
	c.decides()
	c.is(`"n1" leaving [] label [n1] Ready=False AgentAway`)
	c.node(1, func(n *world.Node) { n.Labels = nil })
	c.decides()
	c.is(`"" leaving [] label [] Ready=False NoMatchingNode`) // it is not selected any more
}

// TestAllNotReady: where Kubernetes calls no node Ready, as after it was away itself, that says nothing of the host.
// When nodes are Ready again, in whatever order, pods leave by one of them.
func TestAllNotReady(t *testing.T) {
	c := settled(t)
	ready := func(yes bool, i int) { c.node(i, func(n *world.Node) { n.Ready = yes }) }
	for _, order := range [][]int{{1, 2, 3}, {3, 2, 1}} {
		for _, i := range order {
			ready(false, i)
		}
		c.lasts(5)
		if host := c.w.EgressService("ns0/s0").Host; host == "" {
			t.Fatal("the host was released")
		}
		for _, i := range slices.Backward(order) {
			ready(true, i)
			c.decides()
			c.report("n1", "n2", "n3")
			c.decides()
			if s := c.w.EgressService("ns0/s0"); s.Host == "" || !s.InForce[world.V4] {
				t.Fatal("the host was released")
			}
		}
	}
}

// refusing is a cluster whose only possible host has no such routing table, and has said so for half a minute.
func refusing(t *testing.T) *cluster {
	c := settled(t)
	c.cordoned(2, 3)
	c.object(func(s *world.EgressService) { s.Table, s.Generation = world.RoutingTable{Name: "blue"}, 7 })
	c.refuses("no table blue")
	if told := c.lasts(30); told != "UnknownNetwork UnknownNetwork" { // late, and when it began
		t.Errorf("told of %q", told)
	}
	c.is(`"n1" leaving [] label [n1] Ready=False UnknownNetwork`)
	return c
}

// refuses has n1 hold nothing, and say what keeps it from that; "": it says nothing.
func (c *cluster) refuses(why string) {
	c.misreports("n1", func(h *world.Holding) {
		if h.Holds = nil; why != "" {
			h.Problems = map[string]string{"ns0/s0": why}
			h.Reasons = map[string]string{"ns0/s0": world.ReasonUnknownNetwork}
		}
	})
}

// TestClockBeginsAnew: a node that could not do what it was asked for is not called late, nor its processes looked at,
// as soon as it could: when the spec is another one, or it refuses nothing any more. It has the time that it has at
// first, and is told of when that is over.
func TestClockBeginsAnew(t *testing.T) {
	for name, mend := range map[string]func(*cluster){
		"another spec": func(c *cluster) {
			c.object(func(s *world.EgressService) { s.Table, s.Generation = world.RoutingTable{Name: "green"}, 8 })
		},
		"another spec, which it reads at once": func(c *cluster) {
			c.object(func(s *world.EgressService) { s.Table, s.Generation = world.RoutingTable{Name: "green"}, 8 })
			c.refuses("")
		},
		"the table comes": func(c *cluster) { c.refuses("") },
	} {
		t.Run(name, func(t *testing.T) {
			c := refusing(t)
			mend(c)
			if told := c.decides(); told != "" {
				t.Errorf("told of %q at once", told)
			}
			c.refuses("")
			if told := c.lasts(3); told != "" {
				t.Errorf("told of %q", told)
			}
			c.is(`"n1" leaving [] label [n1] Ready=False WaitingForNode`)
			if said := c.says("ns0/s0", egressservice.ConditionReady); strings.Contains(said, "for more than") {
				t.Errorf("said %s", said)
			}
			if told := c.lasts(4); told != "NodeProblem" {
				t.Errorf("told of %q after 5 s", told)
			}
		})
	}
}

// TestClockBeginsAnewWithoutPods: so it is where nothing is told of what the host says, for no pod waits for it.
func TestClockBeginsAnewWithoutPods(t *testing.T) {
	c := newCluster(t)
	for _, p := range pods() {
		c.set(func(w *world.World) { w.DelPod(p.Key()) })
	}
	reports := func(problems map[string]string) {
		c.set(func(w *world.World) {
			w.SetHolding(&world.Holding{Node: "n1", BootID: "boot-n1", Problems: problems})
		})
	}
	reports(map[string]string{"ns0/s0": "no table blue"})
	c.lasts(8)
	reports(nil)
	c.lasts(8)
	c.is(`"n1" leaving [] label [n1] Ready=False NoEndpoints`)
	c.lasts(4)
	if host := c.w.EgressService("ns0/s0").Host; host != "n2" {
		t.Errorf("host %s, long after that", host)
	}
}

// TestHoldsWithoutNetwork: a host that holds the addresses and has no such routing table gives way to another that may
// have it, and stays the host where there is no other.
func TestHoldsWithoutNetwork(t *testing.T) {
	for host, cordoned := range map[string][]int{"n3": {2}, "n1": {2, 3}} {
		c := settled(t)
		c.cordoned(cordoned...)
		c.object(func(s *world.EgressService) { s.Table, s.Generation = world.RoutingTable{Name: "blue"}, 7 })
		c.misreports("n1", func(h *world.Holding) {
			h.Problems = map[string]string{"ns0/s0": noTable}
			h.Reasons = map[string]string{"ns0/s0": world.ReasonUnknownNetwork}
		})
		c.lasts(8)
		c.is(`"n1" leaving [] label [n1] Ready=False UnknownNetwork`)
		c.lasts(8)
		if have := c.w.EgressService("ns0/s0").Host; have != host {
			t.Errorf("host %s, want %s", have, host)
		}
	}
}

// TestRefusesNowAndThen: a node does not stay the host by saying again and again that it is kept, and no more.
func TestRefusesNowAndThen(t *testing.T) {
	c := settled(t)
	c.cordoned(2)
	c.object(func(s *world.EgressService) { s.Table, s.Generation = world.RoutingTable{Name: "blue"}, 7 })
	for i := range 12 {
		c.refuses([]string{"no table blue", ""}[i%2])
		c.lasts(2)
	}
	if host := c.w.EgressService("ns0/s0").Host; host != "n3" {
		t.Errorf("host %s", host)
	}
}

// TestAnotherSpecForASilentNode: what a node says nothing of counts from the spec that it is to carry out, too.
func TestAnotherSpecForASilentNode(t *testing.T) {
	c := settled(t)
	c.cordoned(2, 3)
	c.refuses("")
	c.lasts(20)
	c.object(func(s *world.EgressService) { s.Table, s.Generation = world.RoutingTable{Name: "blue"}, 7 })
	if told := c.lasts(4); told != "" {
		t.Errorf("told of %q", told)
	}
	if told := c.lasts(3); told != "NodeProblem" {
		t.Errorf("told of %q after 5 s", told)
	}
}

// TestAgentsAwayTogether: while no agent can be asked, for the controller's certificate has expired, the host stays;
// one that dies has a successor all the same.
func TestAgentsAwayTogether(t *testing.T) {
	c := settled(t)
	c.unreached(world.AgentAway, "n1", "n2", "n3")
	c.decides()
	c.is(`"n1" leaving [] label [n1] Ready=False AgentAway`)
	c.unreached(world.NodeUnreachable, "n1")
	c.decides()
	if host := c.w.EgressService("ns0/s0").Host; host != "n2" {
		t.Errorf("host %q", host)
	}
	c.unreached(world.NodeUnreachable, "n2")
	c.decides()
	if host := c.w.EgressService("ns0/s0").Host; host != "" {
		t.Errorf("one agent is away alone: host %q", host)
	}
}

// TestGoesOnAndCounts: a host that goes on though it is unfit counts for its node in every decision, be it about what
// has changed or about everything, as a new leader's is: an older EgressService without a host goes elsewhere.
func TestGoesOnAndCounts(t *testing.T) {
	for _, forgets := range []bool{false, true} {
		c := settled(t)
		c.unreached(world.AgentAway, "n1", "n2", "n3")
		c.decides()
		c.forgets = forgets
		c.add("older", "s", 5000)
		c.decides()
		if have := c.hosts(); have != "n2 n1" {
			t.Errorf("forgets %v: hosts by age %q", forgets, have)
		}
	}
}

// TestSuccessorWhoseAgentIsAwayInTruth: of nodes whose agents are all away, one that never holds what it is given, for
// its agent is away in truth, is followed by another, as an EgressIP's is.
func TestSuccessorWhoseAgentIsAwayInTruth(t *testing.T) {
	c := settled(t)
	c.unreached(world.AgentAway, "n1", "n2", "n3")
	c.decides()
	c.unreached(world.NodeUnreachable, "n1")
	c.decides()
	if host := c.w.EgressService("ns0/s0").Host; host != "n2" {
		t.Fatalf("host %q", host)
	}
	c.lasts(60) // n2 says nothing
	if host := c.w.EgressService("ns0/s0").Host; host != "n3" {
		t.Errorf("host %q, which has not held anything for a minute; in force %v", host, c.binds())
	}
}

// TestOneLocalSuccessor: it is the agents of the cluster that are away together, not those of the nodes that have an
// endpoint.
func TestOneLocalSuccessor(t *testing.T) {
	c := settled(t)
	c.service(func(s *world.Service) { s.ExternalLocal = true })
	c.decides()
	c.report("n1", "n2", "n3")
	c.decides()
	c.unreached(world.AgentAway, "n1", "n2", "n3")
	c.decides()
	c.unreached(world.NodeUnreachable, "n1")
	c.decides()
	if host := c.w.EgressService("ns0/s0").Host; host != "n2" {
		t.Errorf("host %q, in force %v", host, c.binds())
	}
}

// TestClockSetBack: a host that never holds its source is replaced, and a pods' node that confirms nothing is waited
// for no longer than 30 s, be the clock set back meanwhile.
func TestClockSetBack(t *testing.T) {
	c := newCluster(t)
	c.decides()
	c.lasts(2)
	c.now = c.now.Add(-time.Hour)
	c.lasts(14)
	if host := c.w.EgressService("ns0/s0").Host; host != "n2" {
		t.Errorf("host %s", host)
	}
	c = newCluster(t)
	c.decides()
	c.report("n1")
	c.lasts(3)
	c.now = c.now.Add(-time.Hour)
	c.lasts(36)
	c.is(`"n1" leaving [] label [n1] Ready=True Held`)
}

// TestTooLateForAFormerObject: what a node did not do for an object says nothing of one that is made anew by its name,
// whether or not anything was decided between.
func TestTooLateForAFormerObject(t *testing.T) {
	for _, between := range []bool{false, true} {
		c := newCluster(t)
		c.decides()
		c.lasts(15)
		if host := c.w.EgressService("ns0/s0").Host; host != "n2" {
			t.Fatalf("host %s", host)
		}
		c.set(func(w *world.World) { w.DelEgressService("ns0/s0") })
		if between {
			c.decides()
		}
		s := compiletest.EgressService(0)
		s.UID = "another"
		c.set(func(w *world.World) { w.SetEgressService(s) })
		c.lasts(2)
		if host := c.w.EgressService("ns0/s0").Host; host != "n1" {
			t.Errorf("decided between: %v: host %s", between, host)
		}
	}
}

// TestStandbyKeepsNothing: who does not lead notes no object that it will look at anyway.
func TestStandbyKeepsNothing(t *testing.T) {
	c := newCluster(t)
	if n := len(c.decider.Objects); n > 0 {
		t.Errorf("%d objects are noted", n)
	}
}
