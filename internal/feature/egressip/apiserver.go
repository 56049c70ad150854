package egressip

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// APIServer counts the machines of the control plane as nodes: a selected pod reaches the API as every other pod does,
// also while its egress is paused, whether or not these machines run a kubelet.
type APIServer struct{}

func (APIServer) Name() string    { return "egressip-apiserver" }
func (APIServer) Per() world.Kind { return world.KindService }

// Compile adds those of its endpoints that are outside.
func (APIServer) Compile(w *world.View, key string, out *plan.Rows) {
	if key != world.APIServers {
		return
	}
	s := w.Service(key)
	if _, _, ok := w.Zone(); !ok || s == nil {
		return
	}
	for _, p := range s.Ports {
		for _, e := range p.Endpoints {
			if e.Ready && !inCluster(w, e.Addr()) {
				egress.AddNode(w, e.Addr(), out)
			}
		}
	}
}

func inCluster(w *world.View, ip netip.Addr) bool {
	return slices.ContainsFunc(w.Config.Cluster(world.FamilyOf(ip)),
		func(p netip.Prefix) bool { return p.Contains(ip) })
}
