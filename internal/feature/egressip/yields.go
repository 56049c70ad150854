package egressip

import (
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Yields keeps this node's gateway router and kernel from answering for addresses that it yields and that Kubernetes
// has not named since the agent was started. The rows of a previous process are still in force then, and those
// addresses may be others' by now.
type Yields struct{}

func (Yields) Name() string    { return "egressip-yields" }
func (Yields) Per() world.Kind { return world.KindOnce }

// Compile adds what Hosts adds where the EgressIP is known.
func (Yields) Compile(w *world.View, _ string, out *plan.Rows) {
	for _, c := range w.EachYielded() {
		if w.EgressIP(c.Object) == nil {
			muteGatewayRouter(w.Config, world.FamilyOf(c.IP), c.IP, out)
			plan.Add(&out.ReleasedAddrs, c.IP, plan.None{})
		}
	}
}
