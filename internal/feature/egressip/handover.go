package egressip

import (
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/decide/patience"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// This is what EgressIPs tell of themselves to packages handover and patience, which they share with EgressServices.

// NewServed has counted no pod yet that EgressIPs select.
func NewServed(pods *handover.Pods) *handover.Served { return handover.NewServed(pods, podServers) }

// podServers are a pod's, in the families in which it has an address; and the EgressIPs that select it and have no
// claim to its packets, though they ask for addresses of the family.
func podServers(w *world.View, p *world.Pod) []handover.ServedBy {
	var out []handover.ServedBy
	name := w.PrimaryNetwork(p.Namespace)
	for _, f := range w.Config.Families() {
		if len(f.OfAddrs(p.SaidIn(name))) == 0 {
			continue
		}
		claims, unserved := w.Wanted(p, name, f)
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

// NewPatience measures how long nodes take for EgressIPs, and has seen nothing yet.
func NewPatience() *patience.Patience { return patience.New(asksForAddress) }

// asksForAddress says whether there is an EgressIP and its spec names an address.
func asksForAddress(w *world.World, name string, ip netip.Addr) bool {
	e := w.EgressIP(name)
	return e != nil && slices.Contains(e.IPs, ip)
}

// leavingHolders are the former holders of an object's addresses that are to go on translating.
func (a *assigner) leavingHolders(o *object, items []world.Assignment) (out []world.Leaving, again time.Time) {
	has := func(ip netip.Addr) bool { return slices.Contains(o.e.IPs, ip) && !a.isConflicting(o.e.Name, ip) }
	return a.handoverRound().Leaving(handover.Object{Object: refTo(o.e.Name), Is: &o.e.Placement,
		Shown: a.Shown(o.e.Name), Has: has}, items)
}

// handoverRound is this decision round for what EgressIPs share with other objects.
func (a *assigner) handoverRound() *handover.Round {
	return &handover.Round{World: a.world, W: a.w, Served: a.Served, Names: a.world.Nodes(), Now: a.Now}
}
