package service

import (
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// NodeHealth answers load balancers of Services with policy Cluster, which ask each node at one port whether it takes
// connections (KEP-3836; kube-proxy's is 10256). A node that is about to go does not, so that they send it no new ones.
type NodeHealth struct{}

func (NodeHealth) Name() string    { return "service-node-health" }
func (NodeHealth) Per() world.Kind { return world.KindNode }

// Compile adds this node's answer.
func (NodeHealth) Compile(w *world.View, name string, out *plan.Rows) {
	if name != w.Self || w.Config.NodeHealthPort == 0 {
		return
	}
	if n := w.Node(name); n != nil {
		plan.Add(&out.HealthChecks, plan.HealthCheck{Port: w.Config.NodeHealthPort},
			plan.HealthSpec{Node: name, Eligible: !n.Deleting})
	}
}
