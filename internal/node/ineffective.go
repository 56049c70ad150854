package node

import (
	"maps"
	"slices"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// ineffectiveProblems are of EgressIPs and EgressServices under which pods have come since all was last in OVS, while a
// process does not answer. Packets of these pods are dropped, or leave as before. The report is the same otherwise,
// where the node led other pods by the same objects already. Of pods that came before this process began nothing is
// known.
func (r *reporting) ineffectiveProblems(s *plan.State, silent []string) (out []world.Problem) {
	if len(silent) == 0 || r.effective == (plan.Moment{}) {
		return nil
	}
	objects := map[ref.Object]bool{}
	for k := range plan.RowsOf(s.ElemsSince(r.effective), s.SetElems) {
		if o := s.SetElems.Owner(k).Object; o.Kind == ref.EgressIP || o.Kind == ref.EgressService {
			objects[o] = true
		}
	}
	for _, o := range slices.SortedFunc(maps.Keys(objects), ref.Object.Compare) {
		text := "pods that have come under it meanwhile do not leave by it: " + silent[0]
		out = append(out, world.Problem{Object: o, Reason: world.ReasonNoAnswer, Message: text})
	}
	return out
}
