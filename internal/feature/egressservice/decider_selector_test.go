package egressservice_test

import (
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/feature/egressservice"
	"github.com/egret-net/egret/internal/world"
)

const unreadable = `spec.nodeSelector: "-" is no label`

func (c *cluster) selects(nodes world.NodeSelector) {
	c.object(func(s *world.EgressService) { s.Nodes = nodes })
}

// binds says in which families ns0/s0's pods send nothing with another source.
func (c *cluster) binds() [2]bool {
	return [2]bool{c.w.EgressServiceBinds("ns0/s0", world.V4), c.w.EgressServiceBinds("ns0/s0", world.V6)}
}

// saysOfSelector compares the end of what condition Assigned says of ns0/s0.
func (c *cluster) saysOfSelector(want string) {
	c.t.Helper()
	have := decide.Condition(c.w.EgressService("ns0/s0").Conditions, egressservice.ConditionAssigned).Message
	if want == "" && strings.Contains(have, unreadable) || !strings.HasSuffix(have, want) {
		c.t.Errorf("condition Assigned says %q, want its end to be %q", have, want)
	}
}

// TestUnreadableSelector: a selector that cannot be read takes the host away from nobody, and has none chosen. When the
// host is lost, pods send nothing until it can be read, whatever nodes come back; the condition says so.
func TestUnreadableSelector(t *testing.T) {
	c := settled(t)
	both := [2]bool{true, true}
	c.selects(world.NodeSelector{Problem: unreadable})
	c.decides()
	c.is(`"n1" leaving [] label [n1] Ready=True Held`)
	c.saysOfSelector(unreadable + ": mend it; until then n1 stays the host, and no other node is chosen")

	unreachable := func(why world.Unreachability) {
		c.set(func(w *world.World) { w.SetUnreachable("n1", why) })
	}
	unreachable(world.NodeUnreachable)
	if told := c.decides(); told != "Released InvalidSelector FellBack" {
		t.Errorf("told of %q", told)
	}
	for _, when := range []string{"the host is lost", "it is back", "some time later"} {
		c.is(`"" leaving [] label [] Ready=False InvalidSelector`)
		c.saysOfSelector(unreadable + ": mend it; until then no host is chosen, and what the pods send outside over " +
			"IPv4 and IPv6 is dropped")
		if have := c.binds(); have != both {
			t.Errorf("%s: in force %v", when, have)
		}
		unreachable("")
		if told := c.decides(); told != "" {
			t.Errorf("%s: told of %q", when, told)
		}
	}

	c.selects(world.NodeSelector{})
	c.decides()
	if have := c.binds(); have != both {
		t.Errorf("the selector is mended, and a host chosen: in force %v", have)
	}
	c.report("n1", "n2", "n3")
	c.decides()
	c.is(`"n1" leaving [] label [n1] Ready=True Held`)
	c.saysOfSelector("")
}

// TestUnreadableSelectorEnds: what is kept in force ends with what it is for: its Service, its address; and by a
// selector that matches no node, which is people's word that there is to be no host.
func TestUnreadableSelectorEnds(t *testing.T) {
	for name, ends := range map[string]func(*cluster){
		"no Service":    func(c *cluster) { c.set(func(w *world.World) { w.DelService("ns0/s0") }) },
		"no ingress IP": func(c *cluster) { c.service(func(s *world.Service) { s.LoadBalancerIPs = nil }) },
		"no node":       func(c *cluster) { c.selects(green()) },
	} {
		t.Run(name, func(t *testing.T) {
			c := settled(t)
			c.selects(world.NodeSelector{Problem: unreadable})
			c.set(func(w *world.World) { w.DelNode("n1") })
			c.decides()
			if have := c.binds(); have != [2]bool{true, true} {
				t.Errorf("the host is lost: in force %v", have)
			}
			ends(c)
			c.decides()
			if have := c.binds(); have != [2]bool{} {
				t.Errorf("in force %v", have)
			}
		})
	}
}

// TestUnreadableSelectorFromTheFirst: what was never in force is not kept so, and what the pods leave with is said.
// What left by each node's network, or not at all, does not get the node's address.
func TestUnreadableSelectorFromTheFirst(t *testing.T) {
	c := newCluster(t)
	c.selects(world.NodeSelector{Problem: unreadable})
	c.decides()
	c.is(`"" leaving [] label [] Ready=False InvalidSelector`)
	c.saysOfSelector(unreadable + ": mend it; until then no host is chosen, and the pods leave as if there were no " +
		"EgressService")
	if have := c.binds(); have != [2]bool{} {
		t.Errorf("in force %v", have)
	}
	c.object(func(s *world.EgressService) { s.SourceIPBy = world.SourceNetwork })
	c.decides()
	c.saysOfSelector("") // there it has no meaning
	c.object(func(s *world.EgressService) { s.SourceIPBy = world.SourceLoadBalancerIP })
	c.decides()
	if have := c.binds(); have != [2]bool{true, true} {
		t.Errorf("each node was the host, and none is now: in force %v", have)
	}
}

// TestUnreadableSelectorWithoutLabel: the label that it cannot use goes to another one that needs the same, and its
// pods send nothing all the same.
func TestUnreadableSelectorWithoutLabel(t *testing.T) {
	c := newCluster(t)
	add := func(namespace, name string, number, age int, nodes world.NodeSelector) {
		s, service := compiletest.EgressService(0), compiletest.LoadBalancer(0, pods()...)
		if shown := c.w.EgressService(namespace + "/" + name); shown != nil {
			*s = *shown
		}
		s.Namespace, s.Name, s.UID, s.Created = namespace, name, namespace+name, time.Unix(int64(5000-age), 0)
		s.Nodes = nodes
		service.Namespace, service.Name, service.LoadBalancerIPs = namespace, name, compiletest.EgressAddr(number)
		c.set(func(w *world.World) {
			w.SetEgressService(s)
			w.SetService(service)
		})
	}
	binds := func(want bool) {
		t.Helper()
		if s := c.w.EgressService("a/b-c"); c.w.EgressServiceBinds("a/b-c", world.V4) != want || s.Host != "" {
			t.Errorf("host %q, in force %v, want %v", s.Host, s.InForce, want)
		}
	}
	add("a", "b-c", 23, 1, world.NodeSelector{})
	c.decides()
	c.report("n1", "n2", "n3")
	c.decides()
	host := c.w.EgressService("a/b-c").Host
	add("a", "b-c", 23, 1, world.NodeSelector{Problem: unreadable})
	c.set(func(w *world.World) { w.DelNode(host) })
	c.decides()
	binds(true)
	add("a-b", "c", 24, 2, world.NodeSelector{})
	c.decides()
	binds(true)
	if have := c.says("a-b/c", egressservice.ConditionAssigned); !strings.HasPrefix(have, "True Assigned") {
		t.Errorf("said %s", have)
	}
}
