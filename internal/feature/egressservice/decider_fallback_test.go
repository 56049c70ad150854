package egressservice_test

import (
	"maps"
	"strings"
	"testing"
	"time"

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
		c.report("n1", "n2")
		if have := c.decides(); have != "" {
			t.Errorf("when nodes have done it, told of %q", have)
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
	c.set(func(w *world.World) { w.DelService("ns0/s0") })
	is(c, "True NodeIP it has no Service", "Released NoService FellBack", false)
}

// TestFallbackIsConfirmed: nothing is called dropped that a node with pods may still send with its own address: that
// node is named until it has confirmed, by a report of this boot, in both families, and refuses nothing; of one that
// cannot be asked that is said. Where none of its pods is left nobody is asked.
func TestFallbackIsConfirmed(t *testing.T) {
	c := settled(t)
	is := func(what, want string, parts ...string) {
		t.Helper()
		c.decides()
		have := c.says("ns0/s0", decide.ConditionFallback)
		for _, part := range append(parts, want) {
			if !strings.Contains(have, part) {
				t.Errorf("%s: said %s, want %q", what, have, part)
			}
		}
		if !strings.HasPrefix(have, want) {
			t.Errorf("%s: said %s, want %q first", what, have, want)
		}
	}
	const waits, dropped = "True WaitingForNode it has no host for IPv4 and IPv6: what pods send outside over IPv4 and " +
		"IPv6 is to be dropped, as annotation", "True Drop it has no host for IPv4 and IPv6: what pods send outside " +
		"over IPv4 and IPv6 is dropped, as annotation"
	c.object(func(s *world.EgressService) { s.Nodes, s.DropWhenUnassigned = green(), true })
	is("both still lead them to the former host", waits, "not confirmed by n1, n2, where pods may send as before")
	c.report("n1")
	is("one has", waits, "not confirmed by n2, where")
	c.report("n2")
	is("both have", dropped)
	c.misreports("n2", func(h *world.Holding) { h.Steers["ns0/s0"] = h.Steers["ns0/s0"][:1] })
	is("one does in a family", waits, "not confirmed by n2, where")
	c.misreports("n2", func(h *world.Holding) { h.Steers = nil })
	is("one drops nothing", waits, "not confirmed by n2, where")
	c.misreports("n2", func(h *world.Holding) { h.Problems = map[string]string{"ns0/s0": "no such row"} })
	is("one refuses a row", waits, "not confirmed by n2 (no such row), where")
	c.misreports("n2", func(h *world.Holding) { h.BootID = "before" })
	is("one did before its boot", waits, "not confirmed by n2, where")
	c.unreached(world.AgentAway, "n2")
	is("one cannot be asked", dropped, "not known of n2, not ready or not reached, where pods may send as before")
	c.unreached("", "n2")
	is("it can", waits, "not confirmed by n2, where")
	c.set(func(w *world.World) { w.DelPod("ns0/p3") })
	is("it has no pod any more", dropped)
	c.object(func(s *world.EgressService) { s.Nodes = world.NodeSelector{} })
	is("it has a host", "False Hosted")
}

// TestKeptFallbackIsConfirmed: the same where an EgressService stays in force because its selector cannot be read.
func TestKeptFallbackIsConfirmed(t *testing.T) {
	c := settled(t)
	c.object(func(s *world.EgressService) { s.Nodes = world.NodeSelector{Problem: "spec.nodeSelector: no"} })
	c.decides()
	c.set(func(w *world.World) { w.DelNode("n1") })
	for _, x := range []struct{ report, want string }{
		{"n3", "True WaitingForNode it has no host for IPv4 and IPv6: what pods send outside over IPv4 and IPv6 is to be " +
			"dropped until spec.nodeSelector can be read; not confirmed by n2, where"},
		{"n2", "True Drop it has no host for IPv4 and IPv6: what pods send outside over IPv4 and IPv6 is dropped until"},
	} {
		c.decides()
		c.report(x.report)
		c.decides()
		if have := c.says("ns0/s0", decide.ConditionFallback); !strings.HasPrefix(have, x.want) {
			t.Errorf("%s reports: said %s, want %s", x.report, have, x.want)
		}
	}
}

// misreports has a node that does all say something else.
func (c *cluster) misreports(node string, change func(*world.Holding)) {
	c.report(node)
	h := *c.w.Holding(node)
	h.Steers = maps.Clone(h.Steers)
	change(&h)
	c.set(func(w *world.World) { w.SetHolding(&h) })
}

// TestFallbackOfPodsThatOthersServe: what is said of packets is what becomes of them, where an EgressIP or an older
// EgressService decides about those of all or some of the pods; nobody is told anew when another takes over.
func TestFallbackOfPodsThatOthersServe(t *testing.T) {
	c := settled(t)
	is := func(what, want, told string) {
		t.Helper()
		first := c.decides()
		if again := c.decides(); first+again != told {
			t.Errorf("%s: told of %q and %q, want %q", what, first, again, told)
		}
		if have := c.says("ns0/s0", decide.ConditionFallback); !strings.HasPrefix(have, want) {
			t.Errorf("%s: said %s, want %s", what, have, want)
		}
	}
	e := compiletest.EgressIP(0, "egress=p0", compiletest.EgressAddr(0)...)
	for _, ip := range e.IPs {
		e.Items = append(e.Items, world.Assignment{Node: "n3", IP: ip})
	}
	e.InForce = [2]bool{true, true}
	served := func(e *world.EgressIP, namespace string) {
		p := *pods()[0]
		p.Labels = map[string]string{"egress": "p0"}
		c.set(func(w *world.World) {
			w.SetNamespace(&world.Namespace{Name: namespace})
			w.SetPod(&p)
			w.SetEgressIP(e)
		})
	}
	c.object(func(s *world.EgressService) { s.Nodes = green() })
	is("nobody", "True NodeIP it has no host for IPv4 and IPv6: pods leave over IPv4 and IPv6 with their node's address; "+
		"annotate", "Released NoMatchingNode FellBack")
	served(e, "ns0")
	is("an EgressIP serves one pod", "True NodeIP it has no host for IPv4 and IPv6: pods leave over IPv4 and IPv6 with "+
		"their node's address; others decide about pods of it: EgressIP/e0 (1); annotate", "")
	all := *e
	all.Pods = compiletest.EgressIP(0, "").Pods
	served(&all, "ns0")
	is("an EgressIP serves both", "True ServedByOther it has no host for IPv4 and IPv6: others decide about all of its "+
		"pods: EgressIP/e0 (2)", "")
	c.set(func(w *world.World) { w.DelEgressIP("e0") })
	is("it is gone", "True NodeIP it has no host for IPv4 and IPv6: pods leave", "FellBack")

	c.object(func(s *world.EgressService) { s.DropWhenUnassigned = true })
	c.report("n1", "n2")
	is("it drops", "True Drop it has no host", "FellBack")
	older := compiletest.EgressService(3)
	older.Created = older.Created.Add(-time.Hour)
	c.set(func(w *world.World) {
		w.SetEgressService(older)
		w.SetService(compiletest.LoadBalancer(3, pods()...))
	})
	c.decides()
	c.report("n1", "n2", "n3")
	c.decides()
	is("an older one serves both", "True ServedByOther it has no host for IPv4 and IPv6: others decide about all of its "+
		"pods: EgressService/ns0/s3 (2)", egressservice.EventOverlap)
	change := func(edit func(*world.EgressService)) {
		s := *c.w.EgressService("ns0/s3")
		edit(&s)
		c.set(func(w *world.World) { w.SetEgressService(&s) })
		c.decides()
	}
	change(func(s *world.EgressService) { s.Nodes, s.DropWhenUnassigned = green(), true })
	is("the older one only drops", "True DroppedByOther it has no host for IPv4 and IPv6: others decide about all of its "+
		"pods: EgressService/ns0/s3 (2, whose packets it has dropped)", "")
}

// TestOverlappedByOneThatDrops: one that has no host, and what pods behind it send dropped, is not said to serve them.
func TestOverlappedByOneThatDrops(t *testing.T) {
	c := settled(t)
	younger, service := compiletest.EgressService(3), compiletest.LoadBalancer(3, pods()[0])
	c.set(func(w *world.World) {
		w.SetEgressService(younger)
		w.SetService(service)
	})
	c.decides()
	c.report("n1", "n2", "n3")
	c.decides()
	for _, x := range []struct {
		nodes        world.NodeSelector
		reason, text string
	}{
		{green(), "DroppedByOther", "stands by for 1 pod behind its Service, because others decide about them: ns0/s0 (1, " +
			"whose packets it has dropped)"},
		{world.NodeSelector{}, "ServedByOther", "stands by for 1 pod behind its Service, because others serve them: " +
			"ns0/s0 (1)"},
	} {
		c.object(func(s *world.EgressService) { s.Nodes, s.DropWhenUnassigned = x.nodes, true })
		c.decides()
		c.report("n1", "n2", "n3")
		c.decides()
		c.decides()
		for kind, want := range map[string]string{
			egressservice.ConditionReady: "False " + x.reason + " no pod leaves as this EgressService says: it " +
				x.text,
			egressservice.ConditionOverlapped: "True " + x.reason + " " + x.text,
		} {
			if have := c.says("ns0/s3", kind); !strings.HasPrefix(have, want) {
				t.Errorf("%s: have %s, want %s", kind, have, want)
			}
		}
	}
}

// TestFallbackBesideOneByDestination: an EgressIP that decides about what pods send to some networks takes nothing from
// what is said of all the rest.
func TestFallbackBesideOneByDestination(t *testing.T) {
	c := settled(t)
	e := compiletest.EgressIP(0, "", compiletest.EgressAddr(0)...)
	for _, ip := range e.IPs {
		e.Items = append(e.Items, world.Assignment{Node: "n3", IP: ip})
	}
	e.InForce, e.Traffic = [2]bool{true, true}, compiletest.TrafficSelector("a")
	c.set(func(w *world.World) {
		w.SetNamespace(&world.Namespace{Name: "ns0"})
		w.SetEgressIP(e)
		w.SetTraffic(compiletest.Traffic(0, "a", "172.20.0.0/16", "fd00:20::/64"))
	})
	c.decides()
	c.object(func(s *world.EgressService) { s.Nodes = green() })
	if told := c.decides() + " " + c.decides(); !strings.Contains(told, "FellBack") {
		t.Errorf("told of %q", told)
	}
	if said := c.says("ns0/s0", decide.ConditionFallback); !strings.Contains(said,
		"it has no host for IPv4 and IPv6: pods leave over IPv4 and IPv6 with their node's address") {
		t.Errorf("said %s", said)
	}
}
