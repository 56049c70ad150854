package egressservice_test

import (
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

// says is what a condition of an EgressService says.
func (c *cluster) says(key, condition string) string {
	x := decide.Condition(c.w.EgressService(key).Conditions, condition)
	return x.Status + " " + x.Reason + " " + x.Message
}

// TestSourceOfOthers: an ingress IP that is an address of a host or of an EgressIP is no source; that is said with
// whose it is, and ends when it is theirs no more.
func TestSourceOfOthers(t *testing.T) {
	const taken = `"" leaving [] label [] Ready=False IngressIPConflict`
	source := compiletest.EgressAddr(20)
	owned := func(own bool, edit func(*world.Node)) func(*cluster) {
		return func(c *cluster) {
			c.node(2, func(n *world.Node) {
				if own {
					edit(n)
				}
			})
		}
	}
	primary := func(n *world.Node) {
		n.Primary = append(slices.Clone(n.Primary), netip.PrefixFrom(source[0], 24), netip.PrefixFrom(source[1], 64))
	}
	kubelet := func(n *world.Node) { n.InternalIPs = source }
	placed := compiletest.EgressIP(0, "", source...)
	placed.Items = []world.Assignment{{Node: "n3", IP: source[0]}, {Node: "n3", IP: source[1]}}
	for name, x := range map[string]struct {
		begins, ends func(*cluster)
		whose        string
	}{
		"a node's": {owned(true, primary), owned(false, nil),
			"is an address of node n2 by its own word alone: take"},
		"a kubelet's": {owned(true, kubelet), owned(false, nil), "is an address of node n2"},
		"an EgressIP's": {func(c *cluster) {
			c.set(func(w *world.World) { w.SetEgressIP(placed) })
		}, func(c *cluster) {
			c.set(func(w *world.World) { w.DelEgressIP(placed.Name) })
			c.later()
		}, "is an address of EgressIP e0: take"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			x.begins(c)
			if told := c.decides(); told != egressservice.ReasonIngressIPConflict {
				t.Errorf("told of %q", told)
			}
			c.is(taken)
			if said := c.says("ns0/s0", egressservice.ConditionAssigned); !strings.Contains(said, x.whose) {
				t.Errorf("said %s", said)
			}
			x.ends(c)
			c.decides()
			c.report("n1", "n2", "n3")
			c.decides()
			c.is(`"n1" leaving [] label [n1] Ready=True Held`)
		})
	}
}

// TestSourceOnALink: an ingress IP that a load balancer has put on a link of a host is a source.
func TestSourceOnALink(t *testing.T) {
	c := newCluster(t)
	c.node(2, func(n *world.Node) { n.HostAddrs = append(n.HostAddrs, compiletest.EgressAddr(20)...) })
	c.decides()
	c.report("n1", "n2", "n3")
	c.decides()
	c.is(`"n1" leaving [] label [n1] Ready=True Held`)
	if said := c.says("ns0/s0", egressservice.ConditionAssigned); !strings.Contains(said, "unless the load balancer") {
		t.Errorf("said %s", said)
	}
}

// TestSourceThatItHas: a node that says that it has a source in use takes it from nobody; an EgressIP that is given a
// node with it does.
func TestSourceThatItHas(t *testing.T) {
	c := settled(t)
	source := compiletest.EgressAddr(20)
	c.node(2, func(n *world.Node) { n.HostAddrs = append(n.HostAddrs, source...) })
	c.decides()
	c.is(`"n1" leaving [] label [n1] Ready=True Held`)
	if said := c.says("ns0/s0", egressservice.ConditionAssigned); !strings.Contains(said, "of node n2 by its own word") {
		t.Errorf("said %s", said)
	}
	e := compiletest.EgressIP(0, "", source...)
	e.Items = []world.Assignment{{Node: "n3", IP: source[0]}}
	c.set(func(w *world.World) { w.SetEgressIP(e) })
	if told := c.decides(); told != egressservice.ReasonIngressIPConflict+" FellBack" {
		t.Errorf("told of %q", told)
	}
	c.is(`"n1" leaving [] label [n1] Ready=False IngressIPConflict`) // over IPv4 alone
	if s := c.w.EgressService("ns0/s0"); len(s.Items) != 1 || s.Items[0].IP != source[1] {
		t.Errorf("it has %v", s.Items)
	}
}

// TestSharedSource: of two EgressServices whose Services have one address the older leaves with it, or the one that
// does already; the other says whose it is, and has it when it is free.
func TestSharedSource(t *testing.T) {
	c := newCluster(t)
	share := func(age int) string {
		s, service := compiletest.EgressService(3), compiletest.LoadBalancer(3, pods()[1])
		s.Created = time.Unix(int64(age), 0)
		service.LoadBalancerIPs = compiletest.EgressAddr(20)
		c.set(func(w *world.World) {
			w.SetEgressService(s)
			w.SetService(service)
		})
		return s.Key()
	}
	is := func(key, host, said string) {
		t.Helper()
		if have := c.w.EgressService(key).Host; have != host {
			t.Errorf("%s: host %q, want %q", key, have, host)
		}
		if have := c.says(key, egressservice.ConditionAssigned); !strings.HasPrefix(have, said) {
			t.Errorf("%s says %s, want %s", key, have, said)
		}
	}
	const refused = "False IngressIPConflict 172.18.0.70 is the source of EgressService ns0/s"
	other := share(3000)
	c.decides()
	is("ns0/s0", "n1", "True")
	is(other, "", refused+"0, whose Service has it, too: have")
	c.set(func(w *world.World) { w.DelEgressService(other) })
	c.decides()
	share(1000) // it is older than the one that has the address
	c.decides()
	is("ns0/s0", "n1", "True")
	is(other, "", refused+"0")
	c.report("n1", "n2", "n3")
	c.service(func(s *world.Service) { s.LoadBalancerIPs = []netip.Addr{compiletest.EgressAddr(21)[0]} })
	c.decides()
	c.report("n1", "n2", "n3")
	c.decides()
	is("ns0/s0", "n1", "True")
	if host := c.w.EgressService(other).Host; host == "" {
		t.Errorf("the address is free, and %s", c.says(other, egressservice.ConditionAssigned))
	}
	c.report("n1", "n2", "n3")
	c.service(func(*world.Service) {})
	c.decides()
	is("ns0/s0", "", refused+"3")
	c.set(func(w *world.World) { w.DelService(other) })
	c.decides()
	c.report("n1", "n2", "n3")
	c.decides()
	is("ns0/s0", "n1", "True")
}
