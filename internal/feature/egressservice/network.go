package egressservice

import (
	"fmt"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// network is the routing table of this host by which an EgressService's packets go.
type network struct {
	table world.HostTable // ID 0: the host's own routing
	mark  uint32          // of the packets
}

// networkOf is false where this host has no such table.
func networkOf(w *world.View, s *world.EgressService) (n network, ok bool) {
	if h := w.Host(); s.Table != (world.RoutingTable{}) {
		if h == nil {
			return n, false
		}
		if n.table, ok = h.Table(s.Table); !ok || n.table.ID > plan.MostTable {
			return n, false
		}
	}
	// The status decides, which says whose the source is: a spec is known before what follows from it.
	n.mark = plan.EgressServiceMark(int(n.table.ID), s.Host == world.HostAll)
	return n, true
}

// tellOfNetwork says what is the matter with the table, if anything.
func tellOfNetwork(w *world.View, s *world.EgressService, out *plan.Rows) {
	h := w.Host()
	if h == nil || s.Table == (world.RoutingTable{}) {
		return
	}
	table, known := h.Table(s.Table)
	problem := func(reason, format string, args ...any) {
		p := plan.Problem{Object: refTo(s), Reason: reason, Message: fmt.Sprintf(format, args...)}
		plan.Add(&out.Problems, p, plan.None{})
	}
	switch {
	case !known:
		problem(world.ReasonUnknownNetwork, "this host has no VRF and no routing table named %s: make one, or write "+
			"its number (ip route show table NUMBER)", s.Table)
	case table.ID > plan.MostTable:
		problem(world.ReasonUnknownNetwork, "routing table %d has a number above %d, which packets cannot be marked "+
			"for: give it another", table.ID, plan.MostTable)
	default:
		for _, f := range w.Config.Families() {
			if !table.Default[f] && w.EgressServiceActive(s.Key(), f) {
				problem(world.ReasonNoDefaultRoute, "routing table %s has no default route here for IP%s: what pods send "+
					"where it has no route to is dropped", s.Table, f)
			}
		}
	}
}
