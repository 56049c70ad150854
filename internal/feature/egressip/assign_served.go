package egressip

import (
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// NewServed has counted no pod yet that EgressIPs have claims to.
func NewServed() *handover.Served { return handover.NewServed(servers) }

// servers are a pod's, in the families in which it has an address.
func servers(w *world.View, p *world.Pod) []handover.ServedBy {
	var out []handover.ServedBy
	for _, f := range w.Config.Families() {
		if len(f.OfAddrs(p.IPs)) == 0 {
			continue
		}
		for _, c := range w.Claims(p, ref.DefaultNetwork, f) {
			if c.By.Kind == ref.EgressIP {
				out = append(out, handover.ServedBy{By: c.By, Family: f, Node: p.Node})
			}
		}
	}
	return out
}
