package egressservice_test

import (
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/feature/egressservice"
	"github.com/egret-net/egret/internal/world"
)

// TestFallback: what pods leave with while there is no host is a condition, and an Event when it begins or becomes the
// other choice; with the annotation they are bound, whatever keeps it from a host.
func TestFallback(t *testing.T) {
	is := func(c *cluster, says, told string, bound bool) {
		t.Helper()
		if have := c.decides(); have != told {
			t.Errorf("told of %q, want %q", have, told)
		}
		if have := c.says("ns0/s0", decide.ConditionFallback); !strings.HasPrefix(have, says) {
			t.Errorf("said %s, want %s", have, says)
		}
		if have := c.w.EgressServiceBinds("ns0/s0", world.V4); have != bound {
			t.Errorf("%s: bound %v", says, have)
		}
		if claims := c.w.Claims(c.w.Pod("ns0/p0"), "default", world.V4); (len(claims) > 0) != bound {
			t.Errorf("%s: claims %v", says, claims)
		}
	}
	const dropped = "True Drop it has no host for IPv4 and IPv6: what pods send outside over IPv4 and IPv6 is dropped, " +
		"as annotation egret.k8s.ovn.org/when-unassigned=drop asks"
	c := settled(t)
	is(c, "False Hosted in every family", "", true)
	c.object(func(s *world.EgressService) { s.Nodes = green() })
	is(c, "True NodeIP it has no host for IPv4 and IPv6: pods leave over IPv4 and IPv6 with their node's address; "+
		"annotate it egret", "Released NoMatchingNode FellBack", false)
	c.object(func(s *world.EgressService) { s.DropWhenUnassigned = true })
	is(c, dropped, "FellBack", true)
	c.service(func(s *world.Service) { s.LoadBalancer, s.LoadBalancerIPs = false, nil })
	is(c, "True Drop it has no host for IPv4: what", "NotLoadBalancer", true)
	c.service(func(s *world.Service) { s.LoadBalancerIPs = nil })
	is(c, "True Drop it has no host for IPv4: what", "NoIngressIP", true)
	c.service(func(s *world.Service) { s.LoadBalancerIPs = compiletest.EgressAddr(20)[:1] })
	is(c, "True Drop it has no host for IPv4: what pods send outside over IPv4 is dropped, as annotation "+
		"egret.k8s.ovn.org/when-unassigned=drop asks; its Service has no IPv6 ingress IP: over IPv6 pods leave with",
		"NoMatchingNode", true)
	c.object(func(s *world.EgressService) { s.UnassignedProblem = `"dorp" is not "drop"` })
	is(c, "True Drop it has no host", egressservice.ReasonInvalidSpec, true)
	if said := c.says("ns0/s0", decide.ConditionFallback); !strings.HasSuffix(said, `; "dorp" is not "drop"`) {
		t.Errorf("said %s", said)
	}
	is(c, "True Drop it has no host", "", true)
	c.object(func(s *world.EgressService) { s.DropWhenUnassigned, s.UnassignedProblem = false, "" })
	is(c, "True NodeIP it has no host for IPv4: pods", "FellBack", false)
	c.object(func(s *world.EgressService) { s.Nodes = world.NodeSelector{} })
	c.decides()
	c.report("n1", "n2", "n3")
	is(c, "False Hosted in every family", "", true)
	c.set(func(w *world.World) []world.Touch { return w.DelService("ns0/s0") })
	is(c, "True NodeIP it has no Service", "Released NoService FellBack", false)
}
