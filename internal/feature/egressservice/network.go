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
	// lacks says why packets go by the host's own routing though the EgressService names a table; "": they do not.
	lacks string
	// denied: they do because the namespace may not name the table. The controller reports that in a condition.
	denied bool
}

// networkOf is the host's own routing where this host has no such table: the kernel, too, goes on to the main table
// with what a table has no route to. It is that also where the namespace may not name the table, until the controller,
// which says so, takes the host away.
func networkOf(w *world.View, s *world.EgressService) (n network) {
	switch {
	case !w.MayName(s.Namespace, s.Table.String()):
		n.denied = true
	case s.Table != (world.RoutingTable{}):
		n.table, n.lacks = tableOf(w.Host(), s.Table)
	}
	// The status decides, which says whose the source is: a spec is known before what follows from it.
	n.mark = plan.EgressServiceMark(int(n.table.ID), s.Host == world.HostAll)
	return n
}

// tableOf returns a table of this host, or says why packets cannot go by it.
func tableOf(h *world.Host, t world.RoutingTable) (table world.HostTable, lacks string) {
	known := false
	if h != nil {
		table, known = h.Table(t)
	}
	switch {
	case !known:
		lacks = fmt.Sprintf("this host has no VRF and no routing table named %s: make one, or write its number (ip "+
			"route show table NUMBER)", t)
	case table.ID > plan.MostTable:
		lacks = fmt.Sprintf("routing table %d has a number above %d, which packets cannot be marked for: give it "+
			"another", table.ID, plan.MostTable)
	case table.Ours || plan.IsReserved(table.ID):
		lacks = fmt.Sprintf("routing table %d is not one that an EgressService can name: it has Egret's own "+
			"routes, or the host's addresses; name another", table.ID)
	default:
		return table, ""
	}
	return world.HostTable{}, lacks
}

// leadsFamily says whether the table has any route of a family, or refuses all that it has no route to.
func (n network) leadsFamily(f world.Family) bool {
	return n.lacks == "" && !n.denied && (n.table.ID == 0 || n.table.Routes[f] || n.table.Refuses[f])
}

// reportProblems says what is the matter with the table, if anything. With the Service's address packets are right
// whichever way they leave; a table that leads some of them nowhere is then one that was meant so.
func (n network) reportProblems(w *world.View, s *world.EgressService, out *plan.Rows) {
	problem := func(reason, format string, args ...any) {
		p := plan.Problem{Object: refTo(s), Reason: reason, Message: fmt.Sprintf(format, args...)}
		plan.Add(&out.Problems, p, plan.None{})
	}
	if n.lacks != "" {
		problem(world.ReasonUnknownNetwork, "%s; until then %s", n.lacks, n.describeUnrouted(s, false))
	}
	for _, f := range w.Config.Families() {
		switch {
		case n.lacks != "" || n.table.ID == 0 || n.table.Default[f] || !w.EgressServiceActive(s.Key(), f):
		case n.table.Refuses[f]:
			problem(world.ReasonNoDefaultRoute, "routing table %s has no default route here for IP%s, and refuses "+
				"what it has no route to: that is dropped", s.Table, f)
		case s.Host == world.HostAll || !n.table.Routes[f]:
			problem(world.ReasonNoDefaultRoute, "routing table %s has no default route here for IP%s: to where it has "+
				"no route, %s; add a route, or a default route of type unreachable to have that dropped", s.Table, f,
				n.describeUnrouted(s, n.leadsFamily(f)))
		}
	}
}

// describeUnrouted says what becomes of packets that the table does not lead anywhere. leads: it leads others.
func (n network) describeUnrouted(s *world.EgressService, leads bool) string {
	switch {
	case s.Host != world.HostAll:
		return "pods leave by the host's own routing, with the Service's address"
	case s.DropWhenUnassigned && !leads:
		return "what pods send outside is dropped, as its annotation asks"
	}
	return "pods leave by the host's own routing, with the address of the link"
}
