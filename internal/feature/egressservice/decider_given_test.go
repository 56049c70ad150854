package egressservice_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/feature/egressservice"
	"github.com/egret-net/egret/internal/world"
)

// TestGivenBackIsWaitedFor: an EgressService that loses its host, or its way by each node, and gets it back is Ready by
// what nodes report of this giving, not by what they still report of the former one: they are about to see that it was
// lost, if the API shows that. An agent of before does not tell these apart.
func TestGivenBackIsWaitedFor(t *testing.T) {
	for host, by := range map[string]world.SourceIPBy{"n1": world.SourceLoadBalancerIP, "ALL": world.SourceNetwork} {
		for _, shown := range []bool{true, false} {
			for _, older := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, loss is shown %t, older agents %t", host, shown, older), func(t *testing.T) {
					c := settled(t)
					c.object(func(s *world.EgressService) { s.SourceIPBy = by })
					c.decides()
					c.report("n1", "n2")
					if older {
						c.undate("n1", "n2")
					}
					c.decides()
					c.readyBy(host, true)
					c.set(func(w *world.World) { w.DelService("ns0/s0") })
					if c.round(c.now); shown {
						c.decides()
						c.is(`"" leaving [] label [] Ready=False NoService`)
					}
					c.service(func(*world.Service) {})
					c.decides()
					c.readyBy(host, older && host != world.HostAll) // whose pods they are is known when that is decided
					c.decides()
					c.readyBy(host, older)
					if s := c.w.EgressService("ns0/s0"); s.InForce[world.V4] && !older {
						t.Errorf("in force by former reports: %+v", s.Placement)
					}
					c.report("n1")
					c.decides()
					c.readyBy(host, older) // n2 has pods, too
					c.report("n2")
					c.decides()
					c.readyBy(host, true)
				})
			}
		}
	}
}

func (c *cluster) readyBy(host string, ready bool) {
	c.t.Helper()
	label, is := "n1", "True Held"
	if host == world.HostAll {
		label = ""
	}
	if !ready {
		is = "False WaitingForNode"
	}
	c.is(fmt.Sprintf("%q leaving [] label [%s] Ready=%s", host, label, is))
}

// undate makes nodes' reports those of agents of before.
func (c *cluster) undate(nodes ...string) {
	for _, node := range nodes {
		h := *c.w.Holding(node)
		h.HeldSince, h.SteersSince = nil, nil
		c.set(func(w *world.World) { w.SetHolding(&h) })
	}
}

// TestOtherLeaderGivesNothingAnew: a leader begins with what the status says. Of a host that a controller of before has
// chosen nobody says since when, and any report counts.
func TestOtherLeaderGivesNothingAnew(t *testing.T) {
	for _, older := range []bool{false, true} {
		c := newCluster(t)
		if older {
			c.object(func(s *world.EgressService) {
				s.Host = "n1"
				for _, ip := range compiletest.EgressAddr(20) {
					s.Items = append(s.Items, world.Assignment{Node: "n1", IP: ip})
				}
			})
		}
		c.decides()
		c.report("n1", "n2", "n3")
		c.decides()
		given := c.w.EgressService("ns0/s0").Given
		if c.readyBy("n1", true); (len(given) == 0) != older {
			t.Errorf("older %t: given %v", older, given)
		}
		c.w.Undecide()
		c.decider, c.now = egressservice.NewDecider(handover.NewPods()), c.now.Add(-time.Hour)
		c.decides()
		c.readyBy("n1", true)
		if now := c.w.EgressService("ns0/s0").Given; fmt.Sprint(now) != fmt.Sprint(given) {
			t.Errorf("older %t: another leader says %v, not %v", older, now, given)
		}
	}
}
