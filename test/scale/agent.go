package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/node"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/settings"
	"github.com/egret-net/egret/internal/world"
)

const bootID = "scale"

// agent is a node's agent without a node: it follows what an agent follows, into a world of its own, and reports what
// one reports that does at once what it is told.
type agent struct {
	self     string
	source   *kube.Source
	world    *world.World
	api      *node.API
	own      map[string]bool // pods of the node
	changed  []world.Entry   // by the change under way
	last     *node.Report
	stale    bool
	reported atomic.Bool
}

// clusterSubnets has room for 32,768 nodes.
const clusterSubnets = "10.128.0.0/9/24"

// networks are the ranges that the controller is started with.
func networks() (*world.Config, error) {
	c, f := &world.Config{GatewayMode: world.SharedGateway, Bridge: "breth0"}, flag.NewFlagSet("", flag.ContinueOnError)
	subnets := settings.SubnetFlags(f)
	if err := f.Parse([]string{"--cluster-subnets", clusterSubnets}); err != nil {
		return nil, err
	}
	return c, subnets.Into(c)
}

func newAgent(self string, config *rest.Config) (*agent, error) {
	clients, err := kube.NewClients(config)
	if err != nil {
		return nil, err
	}
	ranges, err := networks()
	if err != nil {
		return nil, err
	}
	a := &agent{self: self, world: all.ServedKinds().NewWorld(self, ranges), own: map[string]bool{}}
	a.source = kube.NewSource(clients, slog.New(slog.DiscardHandler), kube.FollowedBy(self,
		all.ServedKinds().AllResources()...)...)
	a.api = &node.API{Node: self, BootID: bootID, Version: "scale", Clients: clients, Observe: a.source.Observe,
		ReadNow: a.source.ReadNow, BeginRead: a.source.BeginRead}
	return a, nil
}

// run is the agent's loop, until ctx ends.
func (a *agent) run(ctx context.Context) {
	go a.source.Run(ctx)
	a.world.FollowChanges(func(e world.Entry) { a.changed = append(a.changed, e) })
	for {
		select {
		case <-ctx.Done():
			return
		case change := <-a.source.Changes():
			change(a.world)
			a.takeChanged()
			a.drain()
		}
		if a.source.Synced() {
			a.tell(ctx)
		}
	}
}

func (a *agent) drain() {
	for {
		select {
		case change := <-a.source.Changes():
			change(a.world)
			a.takeChanged()
		default:
			return
		}
	}
}

// takeChanged notes whether the report may be another one after a change.
func (a *agent) takeChanged() {
	for _, t := range a.changed {
		switch t.Kind {
		case world.KindPod:
			p := a.world.Pod(t.Key)
			is := p != nil && p.Node == a.self
			a.stale = a.stale || is || a.own[t.Key]
			if a.own[t.Key] = is; !is {
				delete(a.own, t.Key)
			}
		case world.KindEgressIP, world.KindHolders, world.KindNode:
			a.stale = true
		}
	}
	a.changed = a.changed[:0]
}

// tell reports what has become different.
func (a *agent) tell(ctx context.Context) {
	n := a.world.Node(a.self)
	if !a.stale || n == nil {
		return
	}
	a.stale = false
	r := a.report(n.UID)
	_, r.Egress = n.Labels[world.AssignableLabel]
	if a.last != nil && a.last.Equal(r) {
		return
	}
	if _, err := a.api.Report(ctx, r); err != nil {
		if a.stale = true; ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "scale:", a.self, err)
		}
		return
	}
	a.last = &r
	a.reported.Store(true)
}

// report holds what the statuses name this node for, and leads its pods to those that hold their addresses.
func (a *agent) report(uid string) node.Report {
	r := node.Report{Owner: uid, Holding: map[world.EgressAddress]ref.Since{}}
	for _, name := range a.world.EgressIPs() {
		p := a.world.PlacementOf(name)
		for _, i := range p.Items {
			if i.Node == a.self {
				r.Holding[world.EgressAddress{Object: name, IP: i.IP}] = p.Since(i)
			}
		}
		for _, l := range p.Leaving {
			if l.Node == a.self {
				given := p.Since(world.Assignment{Node: l.Node, IP: l.IP})
				r.Holding[world.EgressAddress{Object: name, IP: l.IP}] = given
			}
		}
	}
	led := map[string]bool{}
	for pod := range a.own {
		for _, e := range a.world.Selecting(a.world.Pod(pod)) {
			led[e.Name] = true
		}
	}
	for _, name := range a.world.EgressIPs() {
		if led[name] {
			r.Steers = append(r.Steers, a.steers(name)...)
		}
	}
	slices.SortFunc(r.Steers, plan.Steered.Compare)
	return r
}

func (a *agent) steers(name string) (list []plan.Steered) {
	p := a.world.PlacementOf(name)
	for _, i := range p.Items {
		for _, holder := range a.world.Holders(name, i.IP) {
			if holder != i.Node && a.world.Holds(i.Node, name, i.IP) {
				continue // the successor has it
			}
			list = append(list, plan.Steered{
				Egress: plan.Egress{Object: ref.Object{Kind: ref.EgressIP, Name: name}, Network: ref.DefaultNetwork,
					IP: i.IP},
				Node: holder, Since: p.Since(world.Assignment{Node: holder, IP: i.IP}),
			})
		}
	}
	return list
}
