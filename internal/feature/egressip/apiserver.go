package egressip

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// APIServer counts the machines of the control plane as nodes: a selected pod reaches the API as every other pod does,
// also while its egress is paused, whether or not these machines run a kubelet.
type APIServer struct{}

func (APIServer) Name() string    { return "egressip-apiserver" }
func (APIServer) Per() world.Kind { return world.KindService }

// Compile adds the endpoints of the one Service that the API server keeps for itself.
func (APIServer) Compile(w *world.View, key string, out *plan.Rows) {
	if key != "default/kubernetes" {
		return
	}
	s := w.Service(key)
	if _, _, ok := w.Zone(); !ok || s == nil {
		return
	}
	for _, p := range s.Ports {
		for _, e := range p.Endpoints {
			if e.Ready && !inCluster(w, e.Addr()) {
				insideNodes(w, e.Addr(), out)
			}
		}
	}
}

func inCluster(w *world.View, ip netip.Addr) bool {
	return slices.ContainsFunc(w.Config.Cluster(world.FamilyOf(ip)),
		func(p netip.Prefix) bool { return p.Contains(ip) })
}

// insideNodes leaves out addresses of a family that the cluster does not have: there is no set for them.
func insideNodes(w *world.View, ip netip.Addr, out *plan.Rows) {
	if !slices.Contains(w.Config.Families(), world.FamilyOf(ip)) {
		return
	}
	out.AddElem(nodeIPs(world.FamilyOf(ip)), ip.String())
	plan.Claim(&out.SourceExempt, ip, plan.None{})
	nodeIPOnHost(w, ip, out)
}
