package egressservice_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/egressservice"
	"github.com/egret-net/egret/internal/world"
)

// TestLabelIsNotTaken: a-b/c has the label that a/b-c needs, too. Whatever namespace a does with its objects, also with
// times of creation before the other's, and whatever becomes of nodes, the owner keeps its host and its label on that
// one node. The other says LabelAmbiguous. Once the owner is deleted, it is served.
func TestLabelIsNotTaken(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := newCluster(t)
		c.set(func(w *world.World) { w.DelEgressService("ns0/s0") })
		c.add("a-b", "c", 2)
		c.decides()
		for range rapid.IntRange(1, 25).Draw(r, "steps") {
			c.squats(r)
			c.decides()
			if rapid.Bool().Draw(r, "time passes") {
				c.later()
			}
			c.ownerKeeps(r)
		}
		for i := 1; i <= 3; i++ {
			c.set(func(w *world.World) { w.SetUnreachable(fmt.Sprint("n", i), "") })
		}
		c.set(func(w *world.World) { w.DelEgressService("a/b-c") })
		c.add("a", "b-c", rapid.IntRange(3, 9).Draw(r, "age"))
		c.decides()
		if have := c.assigned("a/b-c"); have != " "+egressservice.ReasonLabelAmbiguous {
			r.Fatalf("it asks for another's label: %s", have)
		}
		c.set(func(w *world.World) { w.DelEgressService("a-b/c") })
		c.decides()
		c.later()
		if have := c.assigned("a/b-c"); !strings.HasSuffix(have, " Assigned") {
			r.Fatalf("the owner is deleted: %s", have)
		}
	})
}

// squats is one change by who may write objects in namespace a, or a node that goes or comes back.
func (c *cluster) squats(r *rapid.T) {
	age := rapid.IntRange(1, 9).Draw(r, "age")
	switch rapid.IntRange(0, 5).Draw(r, "what") {
	case 0:
		c.add("a", "b-c", age)
	case 1:
		c.set(func(w *world.World) { w.DelEgressService("a/b-c") })
	case 2:
		c.set(func(w *world.World) { w.DelService("a/b-c") })
	case 3:
		s := compiletest.EgressService(0)
		s.Namespace, s.Name, s.UID, s.Created = "a", "b-c", fmt.Sprint("u", age), time.Unix(int64(5000-age), 0)
		s.SourceIPBy = rapid.SampledFrom([]world.SourceIPBy{world.SourceNetwork, world.SourceLoadBalancerIP}).Draw(r,
			"source by")
		s.DropWhenUnassigned = rapid.Bool().Draw(r, "drop")
		c.set(func(w *world.World) { w.SetEgressService(s) })
	case 4:
		service := compiletest.LoadBalancer(0, pods()...)
		service.Namespace, service.Name = "a", "b-c"
		service.LoadBalancer = rapid.Bool().Draw(r, "load balancer")
		service.LoadBalancerIPs = compiletest.EgressAddr(30 + age) // the owner's among them
		c.set(func(w *world.World) { w.SetService(service) })
	case 5: // n3 stays
		why := rapid.SampledFrom([]world.Unreachability{"", world.NodeUnreachable}).Draw(r, "why")
		node := rapid.SampledFrom([]string{"n1", "n2"}).Draw(r, "node")
		c.set(func(w *world.World) { w.SetUnreachable(node, why) })
	}
}

// ownerKeeps requires that a-b/c has a host, and its label on that node alone.
func (c *cluster) ownerKeeps(r *rapid.T) {
	owner := c.w.EgressService("a-b/c")
	if owner.Host == "" {
		r.Fatalf("the owner: %s; the other: %s", c.assigned("a-b/c"), c.assigned("a/b-c"))
	}
	if other := c.w.EgressService("a/b-c"); other != nil && other.Host != "" && other.Host != world.HostAll {
		r.Fatalf("the other has host %s beside the owner's", other.Host)
	}
	var labelled []string
	for _, node := range names {
		if _, has := c.w.Said(node).Labels[egressservice.LabelPrefix+"a-b-c"]; has {
			labelled = append(labelled, node)
		}
	}
	if !slices.Equal(labelled, []string{owner.Host}) {
		r.Fatalf("the label is on %v, the host is %s", labelled, owner.Host)
	}
}
