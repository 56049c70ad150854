package egressip

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Linger compares what the former plan translated to, of what did not linger, with a new plan. It returns the same of the new plan, and the addresses
// that begin to linger: those that this node translated to until it gave way for them, though the status names it.
func Linger(w *world.World, before []plan.Egress, s *plan.State) (now, begin []plan.Egress) {
	for t := range s.Translated.Rows() {
		if !w.Lingers(t.Object.Name, t.IP) {
			now = append(now, t)
		}
	}
	for _, t := range before {
		name := t.Object.Name
		_, yielded := w.Yielded(name, t.IP)
		if yielded && mayLinger(&w.View, name, t.IP) && !slices.Contains(now, t) && !w.Lingers(name, t.IP) {
			begin = append(begin, t)
		}
	}
	return now, begin
}

// mayLinger says whether this node has given way without the API server's word, which the status would be: once it names another node, status.leaving
// says how long this one is needed.
func mayLinger(w *world.View, egressIP string, ip netip.Addr) bool {
	e := w.EgressIP(egressIP)
	return e != nil && e.Assignee(ip) == w.Self
}
