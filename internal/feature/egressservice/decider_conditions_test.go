package egressservice_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/feature/egressservice"
	"github.com/egret-net/egret/internal/world"
)

// lacksTable has a node say that it has no table blue, and does nothing for ns0/s0.
func (c *cluster) lacksTable(node string) {
	h := &world.Holding{Node: node, BootID: "boot-" + node, Problems: map[string]string{"ns0/s0": noTable},
		Reasons: map[string]string{"ns0/s0": world.ReasonUnknownNetwork}}
	c.set(func(w *world.World) { w.SetHolding(h) })
}

const noTable = "there is no table blue"

// TestProblemIsToldOnce: what several nodes say, or one says about several addresses and families, is in the condition
// and in the Event once, with the nodes, and is told again only of a node that begins to say it.
func TestProblemIsToldOnce(t *testing.T) {
	all := func(s *world.EgressService) { s.SourceIPBy = world.SourceNetwork }
	host := func(*world.EgressService) {}
	ips := compiletest.EgressAddr(20)
	const unled = " does not lead its pods there over IPv4 and IPv6 yet"
	for name, x := range map[string]struct {
		edit         func(*world.EgressService)
		first, again string
	}{
		"all": {all, "n1" + unled + ": " + noTable, "n1" + unled + ", n2" + unled + ": " + noTable},
		"host": {host, fmt.Sprintf("n1 does not hold %s yet, n1 does not hold %s yet, n1%s: %s", ips[0], ips[1], unled,
			noTable), ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := settled(t)
			c.object(func(s *world.EgressService) { s.Table.Name = "blue"; x.edit(s) })
			c.decides()
			c.report("n1", "n2", "n3")
			c.decides()
			c.lacksTable("n1")
			c.tellsOnce("n1 begins", x.first)
			if x.again != "" {
				c.lacksTable("n2")
				c.tellsOnce("n2 begins", x.again)
			}
			c.report("n1", "n2", "n3")
			c.decides()
			if have := c.says("ns0/s0", egressservice.ConditionReady); !strings.HasPrefix(have, "True") {
				t.Errorf("all have it: %s", have)
			}
		})
	}
}

// tellsOnce compares what condition Ready says after a decision that tells of something.
func (c *cluster) tellsOnce(when, want string) {
	c.t.Helper()
	told, _ := c.round(c.now)
	if events := told["ns0/s0"]; len(events) != 1 || strings.Count(events[0].Message, noTable) != 1 {
		c.t.Errorf("%s: told of %+v", when, events)
	}
	c.set(func(w *world.World) { show(w, "") })
	if ready := decide.Condition(c.w.EgressService("ns0/s0").Conditions, egressservice.ConditionReady); ready.Message !=
		want {
		c.t.Errorf("%s: condition Ready says\n%s\nwant\n%s", when, ready.Message, want)
	}
}

// TestMovesInWords: an Event about the host is a sentence, whichever host there was and is.
func TestMovesInWords(t *testing.T) {
	c := newCluster(t)
	says := func(what, want string) {
		t.Helper()
		told, _ := c.round(c.now)
		c.set(func(w *world.World) { show(w, "") })
		var said []string
		for _, e := range told["ns0/s0"] {
			if !e.Warning {
				said = append(said, e.Reason+": "+e.Message)
			}
		}
		if have := strings.Join(said, "; "); have != want {
			t.Errorf("%s: have %s, want %s", what, have, want)
		}
	}
	by := func(source world.SourceIPBy) {
		c.object(func(s *world.EgressService) { s.SourceIPBy = source })
	}
	says("a node", "Assigned: the host is n1")
	by(world.SourceNetwork)
	says("a node, then all", "Moved: n1 is no longer the host: each node is the host of the pods that it runs")
	c.service(func(s *world.Service) { s.LoadBalancer = false })
	says("none after all", "Released: nodes are no longer the hosts of the pods that they run (NotLoadBalancer)")
	c.service(func(*world.Service) {})
	says("all", "Assigned: each node is the host of the pods that it runs")
	by(world.SourceLoadBalancerIP)
	says("all, then a node", "Moved: nodes are no longer the hosts of the pods that they run: the host is n1")
	c.cordoned(1)
	says("another node", "Moved: the host was n1 (NodeCordoned) and is n2")
	c.service(func(s *world.Service) { s.LoadBalancer = false })
	says("none", "Released: n2 is no longer the host (NotLoadBalancer)")
}

// TestNetworkNotAllowed: an EgressService that names a routing table which its namespace may not name has no host, says
// so, and keeps its address from nobody; it has one when it may.
func TestNetworkNotAllowed(t *testing.T) {
	limit := func(c *cluster, networks ...string) {
		c.set(func(w *world.World) {
			w.SetNamespace(&world.Namespace{Name: "ns0", LimitsNetworks: networks != nil, Networks: networks})
		})
		c.decides()
		c.report("n1", "n2", "n3")
		c.decides()
	}
	for _, by := range []world.SourceIPBy{world.SourceLoadBalancerIP, world.SourceNetwork} {
		c := settled(t)
		c.object(func(s *world.EgressService) { s.Table.Name, s.SourceIPBy = "blue", by })
		limit(c, "green", "100")
		if s, said := c.w.EgressService("ns0/s0"), c.says("ns0/s0", egressservice.ConditionReady); s.Host != "" ||
			s.InForce != ([2]bool{}) || !strings.HasPrefix(said, "False NetworkNotAllowed") ||
			!strings.Contains(said, "blue") {
			t.Errorf("by %d: host %q in force %v: %s", by, s.Host, s.InForce, said)
		}
		limit(c, "blue")
		if s := c.w.EgressService("ns0/s0"); s.Host == "" {
			t.Errorf("by %d: allowed, and no host: %s", by, c.says("ns0/s0", egressservice.ConditionReady))
		}
	}
}

// TestNeverOverriddenIsTold: pods that an EgressIP keeps from an EgressService are in its condition, with the EgressIP.
func TestNeverOverriddenIsTold(t *testing.T) {
	c := settled(t)
	e := compiletest.EgressIP(0, "", compiletest.EgressAddr(50)...)
	e.NeverOverridden = true
	c.set(func(w *world.World) {
		w.SetNamespace(&world.Namespace{Name: "ns0"})
		w.SetEgressIP(e)
	})
	c.decides()
	for _, condition := range []string{egressservice.ConditionOverlapped, egressservice.ConditionReady} {
		if said := c.says("ns0/s0", condition); !strings.Contains(said, "EgressIP/e0") {
			t.Errorf("%s: %s", condition, said)
		}
	}
	if said := c.says("ns0/s0", egressservice.ConditionOverlapped); !strings.Contains(said, "=never") {
		t.Errorf("%s", said)
	}
}
