package egressservice_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/feature/egressservice"
	"github.com/egret-net/egret/internal/world"
)

// TestUnservableKeepsNothing: one that cannot be served as it is written takes neither its label nor an address from a
// younger one that can; it has its own reason. When it can be served again, nothing is taken from who has it.
func TestUnservableKeepsNothing(t *testing.T) {
	for name, x := range map[string]struct {
		breaks func(*cluster, *world.EgressService, *world.Service)
		reason string
	}{
		"a bad field": {func(_ *cluster, s *world.EgressService, _ *world.Service) {
			s.Problems = []string{"spec.network: no"}
		}, egressservice.ReasonInvalidSpec},
		"no node matches": {func(_ *cluster, s *world.EgressService, _ *world.Service) { s.Nodes = green() },
			egressservice.ReasonNoMatchingNode},
		"unreadable selector": {func(_ *cluster, s *world.EgressService, _ *world.Service) {
			s.Nodes = world.NodeSelector{Problem: "spec.nodeSelector: no"}
		}, egressservice.ReasonInvalidSelector},
		"no node with an endpoint matches": {func(c *cluster, s *world.EgressService, service *world.Service) {
			c.node(3, func(n *world.Node) { n.Labels = map[string]string{"color": "green"} })
			s.Nodes, service.ExternalLocal = green(), true
		}, egressservice.ReasonNoMatchingNode},
		"another type": {func(_ *cluster, _ *world.EgressService, service *world.Service) {
			service.LoadBalancer = false
		}, egressservice.ReasonNotLoadBalancer},
		"a name that is too long": {func(_ *cluster, s *world.EgressService, service *world.Service) {
			s.Name = strings.Repeat("x", 63)
			service.Name = s.Name
		}, egressservice.ReasonLabelTooLong},
		"no address": {func(_ *cluster, _ *world.EgressService, service *world.Service) {
			service.LoadBalancerIPs = nil
		}, egressservice.ReasonNoIngressIP},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.set(func(w *world.World) { w.DelEgressService("ns0/s0") })
			older, service := c.add("a-b", "c", 9), compiletest.LoadBalancer(0, pods()...)
			broken := *older
			service.Namespace, service.Name, service.LoadBalancerIPs = "a-b", "c", compiletest.EgressAddr(31)
			x.breaks(c, &broken, service)
			c.set(func(w *world.World) {
				w.DelEgressService("a-b/c")
				w.SetEgressService(&broken)
				w.SetService(service)
			})
			c.add("a", "b-c", 1)
			c.decides()
			if have := c.assigned("a/b-c"); have != "n1 Assigned" {
				t.Errorf("the younger one: %s: %s", have, c.says("a/b-c", egressservice.ConditionAssigned))
			}
			if have := c.assigned(broken.Key()); have != " "+x.reason {
				t.Errorf("the older one: %s", have)
			}
			c.add("a-b", "c", 1)
			c.set(func(w *world.World) { w.SetEgressService(older) })
			c.decides()
			c.decides()
			if a, b := c.assigned("a/b-c"), c.assigned("a-b/c"); a != "n1 Assigned" || b[0] != ' ' {
				t.Errorf("it can be served again: %s; the younger one: %s", b, a)
			}
			c.set(func(w *world.World) { w.DelEgressService("a/b-c") })
			c.later()
			if have := c.assigned("a-b/c"); !strings.HasSuffix(have, "n1 Assigned") {
				t.Errorf("the younger one is gone: %s", have)
			}
		})
	}
}

// TestManyShare: of many whose Services have the same two addresses of each family (MetalLB's allow-shared-ip) the two
// oldest are served, and the next when one goes. Asking each of the older ones whether it is served, and each of these
// the same, would not end.
func TestManyShare(t *testing.T) {
	c := newCluster(t)
	c.set(func(w *world.World) { w.DelEgressService("ns0/s0") })
	const many = 60
	for i := range many {
		s := c.add("ns0", fmt.Sprint("x", i), many-i)
		service := compiletest.LoadBalancer(0, pods()...)
		service.Namespace, service.Name = s.Namespace, s.Name
		service.LoadBalancerIPs = slices.Concat(compiletest.EgressAddr(40), compiletest.EgressAddr(41))
		c.set(func(w *world.World) { w.SetService(service) })
	}
	for next := range 2 {
		c.decides()
		c.later()
		for i := next; i < many; i++ {
			if have := c.assigned(fmt.Sprint("ns0/x", i)); (have[0] != ' ') != (i <= next+1) {
				t.Errorf("x%d is the oldest, and of x%d: %s", next, i, have)
			}
		}
		c.set(func(w *world.World) { w.DelEgressService(fmt.Sprint("ns0/x", next)) })
	}
}

// TestUnwellKeepsItsThings: a node that is not well for a moment hands nothing to a younger one.
func TestUnwellKeepsItsThings(t *testing.T) {
	c := settled(t)
	c.node(1, func(n *world.Node) { n.Labels = map[string]string{"color": "green"} })
	c.object(func(s *world.EgressService) { s.Nodes = green() })
	younger := c.add("ns1", "young", 0)
	c.set(func(w *world.World) {
		service := *w.Service(younger.Key())
		service.LoadBalancerIPs = compiletest.EgressAddr(20)
		w.SetService(&service)
	})
	c.decides()
	c.set(func(w *world.World) { w.SetUnreachable("n1", world.NodeUnreachable) })
	c.decides()
	c.decides()
	if a, b := c.assigned("ns0/s0"), c.assigned("ns1/young"); a != " NoMatchingNode" || b != " IngressIPConflict" {
		t.Errorf("its only node is unreachable: %s; the younger one: %s", a, b)
	}
	c.set(func(w *world.World) { w.SetUnreachable("n1", "") })
	c.decides()
	if have := c.assigned("ns0/s0"); have != "n1 Assigned" {
		t.Errorf("its node is back: %s", have)
	}
}

// TestRefusedByOneKeepsNothingFromAnother: the oldest has the address that the second needs; the third has the label
// that the second needs, too.
func TestRefusedByOneKeepsNothingFromAnother(t *testing.T) {
	c := settled(t)
	second := c.add("a-b", "c", 2)
	c.set(func(w *world.World) {
		service := *w.Service(second.Key())
		service.LoadBalancerIPs = compiletest.EgressAddr(20)
		w.SetService(&service)
	})
	c.decides()
	c.add("a", "b-c", 1)
	c.decides()
	if a, b := c.assigned("a-b/c"), c.assigned("a/b-c"); a != " IngressIPConflict" || b != "n2 Assigned" {
		t.Errorf("the second: %s; the third: %s", a, b)
	}
	c.set(func(w *world.World) { w.DelEgressService("ns0/s0") })
	c.report("n1", "n2", "n3")
	c.decides()
	if a, b := c.assigned("a-b/c"), c.assigned("a/b-c"); a != " LabelAmbiguous" || b != "n2 Assigned" {
		t.Errorf("the oldest is gone: the second: %s; the third: %s", a, b)
	}
}

// TestKeptWhileItWaits: one in force whose load balancer gives it an address that a node has not let go of sends
// nothing until that is free, rather than with nodes' addresses. One that was not in force, or whose address is
// another's, does.
func TestKeptWhileItWaits(t *testing.T) {
	ip := compiletest.V4(172, 18, 0, 99)
	holds := func(c *cluster, ips ...netip.Addr) {
		c.set(func(w *world.World) {
			w.SetHolding(&world.Holding{Node: "n3", BootID: "boot-n3",
				Holds: map[string][]netip.Addr{"shop/former": ips}})
		})
	}
	for _, x := range []struct {
		begin func(*testing.T) *cluster
		bound bool
	}{{settled, true}, {newCluster, false}} {
		c := x.begin(t)
		holds(c, ip)
		c.service(func(s *world.Service) { s.LoadBalancerIPs = []netip.Addr{ip} })
		for range 3 {
			c.decides()
			c.is(`"" leaving [] label [] Ready=False IngressIPConflict`)
			said := c.says("ns0/s0", decide.ConditionFallback)
			if have := c.binds()[world.V4]; have != x.bound || strings.Contains(said,
				" until an ingress IP that is waited for is free") != x.bound {
				t.Errorf("in force %v: %s", have, said)
			}
		}
		holds(c)
		c.decides()
		if have := c.assigned("ns0/s0"); have != "n1 Assigned" || c.binds()[world.V4] != x.bound {
			t.Errorf("let go: %s, in force %v", have, c.binds())
		}
		other := c.add("ns1", "other", -1)
		c.set(func(w *world.World) {
			service := *w.Service(other.Key())
			service.LoadBalancerIPs = []netip.Addr{ip}
			w.SetService(&service)
		})
		c.decides()
		if have := c.assigned("ns1/other"); have != " IngressIPConflict" ||
			c.w.EgressServiceBinds("ns1/other", world.V4) {
			t.Errorf("another's for good: %s", have)
		}
	}
}

// TestStandingHolder: an address that a node still holds for a former EgressService, or an EgressIP, is nobody's source
// until the node has let go of it, or is out; who has it already keeps it, and a node that says so of too much is not
// believed.
func TestStandingHolder(t *testing.T) {
	ip := compiletest.EgressAddr(20)[0]
	stands := func(c *cluster, object string) {
		c.set(func(w *world.World) {
			w.SetHolding(&world.Holding{Node: "n3", BootID: "boot-n3",
				Holds: map[string][]netip.Addr{object: {ip}}})
		})
	}
	for name, out := range map[string]func(*world.World){
		"let go":    func(w *world.World) { w.SetHolding(&world.Holding{Node: "n3"}) },
		"no report": func(w *world.World) { w.DelHolding("n3") },
		"deleted":   func(w *world.World) { w.DelNode("n3") },
		"dead": func(w *world.World) {
			n := named(compiletest.Node(3))
			n.Ready = false
			w.SetUnreachable("n3", world.NodeUnreachable)
			w.SetNode(n)
		},
		"rebooted": func(w *world.World) {
			n := named(compiletest.Node(3))
			n.BootID = "next"
			w.SetNode(n)
		},
	} {
		for _, object := range []string{"shop/former", "former"} {
			t.Run(name+" "+object, func(t *testing.T) {
				c := newCluster(t)
				c.service(func(s *world.Service) { s.LoadBalancerIPs = []netip.Addr{ip} })
				stands(c, object)
				c.set(func(w *world.World) { w.SetUnreachable("n3", world.AgentAway) })
				c.decides()
				c.is(`"" leaving [] label [] Ready=False IngressIPConflict`)
				if said := c.says("ns0/s0", egressservice.ConditionAssigned); !strings.Contains(said,
					ip.String()+" is still held by node n3 for Egress") || !strings.Contains(said, object+", by that") {
					t.Errorf("said %s", said)
				}
				c.set(func(w *world.World) { // for a moment, and it goes on translating
					w.SetUnreachable("n3", world.NodeUnreachable)
				})
				c.decides()
				c.is(`"" leaving [] label [] Ready=False IngressIPConflict`)
				c.set(func(w *world.World) { w.SetUnreachable("n3", world.AgentAway) })
				c.set(out)
				c.decides()
				if name == "no report" { // which is no word of the node
					c.later()
				}
				if have := c.assigned("ns0/s0"); have != "n1 Assigned" {
					t.Errorf("%s: %s", name, have)
				}
				stands(c, object)
				c.decides()
				if have := c.assigned("ns0/s0"); have != "n1 Assigned" {
					t.Errorf("it has it: %s", have)
				}
			})
		}
	}
	c, all := newCluster(t), []netip.Addr{ip}
	c.service(func(s *world.Service) { s.LoadBalancerIPs = all })
	for i := range 64 {
		all = append(all, compiletest.V4(192, 0, 2, i))
	}
	c.set(func(w *world.World) {
		w.SetHolding(&world.Holding{Node: "n3", BootID: "boot-n3", Holds: map[string][]netip.Addr{"x/y": all}})
	})
	c.decides()
	if have := c.assigned("ns0/s0"); have != "n1 Assigned" {
		t.Errorf("too much: %s", have)
	}
}

// TestNobodysEndpoints: where all endpoints are addresses that no pod of the namespace has, no pod is behind the
// Service.
func TestNobodysEndpoints(t *testing.T) {
	for name, edit := range map[string]func(*world.Service){
		"nobody's": func(s *world.Service) {
			s.Ports[0].Endpoints = []world.Endpoint{{AddrPort: netip.AddrPortFrom(compiletest.V4(10, 244, 9, 9), 80)}}
		},
		"another namespace's": func(s *world.Service) {
			s.Ports[0].Endpoints = compiletest.LoadBalancer(0, compiletest.Pod(1, "n1")).Ports[0].Endpoints
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := settled(t)
			p := compiletest.Pod(1, "n1")
			p.Running = true
			c.set(func(w *world.World) { w.SetPod(p) })
			c.service(edit)
			if told := c.decides(); told != egressservice.ReasonNoEndpoints {
				t.Errorf("told of %q", told)
			}
			c.is(`"n1" leaving [] label [n1] Ready=False NoEndpoints`)
			said := c.says("ns0/s0", egressservice.ConditionReady)
			if !strings.Contains(said, "no pod of namespace ns0") {
				t.Errorf("said %s", said)
			}
			c.service(func(*world.Service) {})
			c.decides()
			c.is(`"n1" leaving [] label [n1] Ready=True Held`)
			for _, p := range pods() {
				c.set(func(w *world.World) { w.DelPod(p.Key()) })
			}
			c.decides()
			c.is(`"n1" leaving [] label [n1] Ready=False NoEndpoints`)
			c.set(func(w *world.World) { w.SetPod(pods()[0]) })
			c.decides()
			c.is(`"n1" leaving [] label [n1] Ready=True Held`)
		})
	}
}

// TestUnsaidHolder: an address that a node was named for, and that it has not said that it holds, goes to another
// EgressService when that node has said so and has let go of it; or 10 s after it was named for it, if it says nothing.
func TestUnsaidHolder(t *testing.T) {
	ip := compiletest.EgressAddr(20)[0]
	for name, x := range map[string]struct{ former, heir string }{
		"of an EgressService": {"ns0/s0", "ns0/s3"},
		"of an EgressIP":      {"e0", "ns0/s0"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, says := range []bool{false, true} {
				c := newCluster(t)
				if x.former == "e0" {
					e := compiletest.EgressIP(0, "", ip)
					e.Items = []world.Assignment{{Node: "n1", IP: ip}}
					c.set(func(w *world.World) { w.SetEgressIP(e) })
				} else {
					c.add("ns0", "s3", 1)
					c.set(func(w *world.World) {
						service := compiletest.LoadBalancer(3, compiletest.Pod(0, "n1"))
						service.LoadBalancerIPs = []netip.Addr{ip}
						w.SetService(service)
					})
				}
				c.decides()
				c.set(func(w *world.World) {
					if x.former == "e0" {
						w.DelEgressIP("e0")
						return
					}
					w.DelEgressService(x.former)
				})
				waits := func(when string) {
					t.Helper()
					c.decides()
					if have := c.w.EgressService(x.heir).Sources(); len(have) > 0 && have[0] == ip {
						t.Fatalf("%s it has %v", when, have)
					}
				}
				waits("at once")
				if said := c.says(x.heir, egressservice.ConditionAssigned); !strings.Contains(said,
					ip.String()+" may still be held by node n1 for Egress") {
					t.Errorf("said %s", said)
				}
				c.now = c.now.Add(8 * time.Second)
				waits("after 9 s")
				if says {
					c.says1(x.former, ip)
					c.now = c.now.Add(time.Hour)
					waits("as long as n1 says that it holds it")
					c.says1(x.former)
				}
				c.now = c.now.Add(time.Second)
				c.decides()
				if have := c.w.EgressService(x.heir).Sources(); len(have) == 0 || have[0] != ip {
					t.Errorf("n1 said so: %v: in the end it has %v", says, have)
				}
			}
		})
	}
}

// says1 has n1 say that it holds addresses for an object.
func (c *cluster) says1(object string, ips ...netip.Addr) {
	c.set(func(w *world.World) {
		w.SetHolding(&world.Holding{Node: "n1", BootID: "boot-n1", Holds: map[string][]netip.Addr{object: ips}})
	})
}

// TestMostOfNamespace: an EgressService with too many older ones in its namespace is not served, says so, and keeps
// nothing from another namespace. It is served when one of these goes, and what it needs is nobody's.
func TestMostOfNamespace(t *testing.T) {
	c := newCluster(t)
	c.set(func(w *world.World) { w.DelEgressService("ns0/s0") })
	filler := compiletest.EgressService(0)
	filler.Namespace, filler.Created = "a-b", time.Unix(1, 0)
	for i := range world.MaxEgressServices {
		one := *filler
		one.Name, one.UID = fmt.Sprint("filler", i), fmt.Sprint("filler", i)
		c.set(func(w *world.World) { w.SetEgressService(&one) })
	}
	c.add("a-b", "c", 9)
	c.add("a", "b-c", 1)
	events := c.decides()
	if have := c.assigned("a-b/c"); have != " "+egressservice.ReasonTooMany {
		t.Errorf("one too many: %s", have)
	}
	if !strings.Contains(events, egressservice.ReasonTooMany) {
		t.Errorf("no Event says so: %s", events)
	}
	if have := c.assigned("a/b-c"); have != "n1 Assigned" {
		t.Errorf("the other namespace's: %s", have)
	}
	c.set(func(w *world.World) {
		w.DelEgressService("a/b-c")
		w.DelEgressService("a-b/filler7")
	})
	c.decides()
	if have := c.assigned("a-b/c"); have != "n1 Assigned" {
		t.Errorf("one of its namespace has gone: %s", have)
	}
}
