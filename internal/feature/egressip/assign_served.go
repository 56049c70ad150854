package egressip

import (
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// NewServed has counted no pod yet that EgressIPs select.
func NewServed() *handover.Served { return handover.NewServed(servers) }

// servers are a pod's, in the families in which it has an address; and the EgressIPs that select it and have no claim
// to its packets, though they ask for addresses of the family.
func servers(w *world.View, p *world.Pod) []handover.ServedBy {
	var out []handover.ServedBy
	for _, f := range w.Config.Families() {
		if len(f.OfAddrs(p.IPs)) == 0 {
			continue
		}
		claims, unserved := w.Wanted(p, ref.DefaultNetwork, f)
		for _, c := range claims {
			if c.By.Kind == ref.EgressIP {
				out = append(out, handover.ServedBy{By: c.By, Family: f, Node: p.Node})
			}
		}
		for _, s := range unserved {
			out = append(out, handover.NotServedBy(s.By, f, p.Node, s.For)...)
		}
	}
	return out
}
