package egressservice

import (
	"fmt"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/world"
)

// families are both; a pod has an address of those that the cluster has.
var families = [...]world.Family{world.V4, world.V6}

// servers are the EgressServices with a claim to a pod's packets, by family. One that only has a host has none to those
// that an EgressIP in force claims: no node steers them, or has to, before the EgressService is in force.
func servers(w *world.View, p *world.Pod) []handover.ServedBy {
	var out []handover.ServedBy
	for _, f := range families {
		if s := serving(w, p, f); s != nil {
			out = append(out, handover.ServedBy{By: refTo(s), Family: f, Node: p.Node})
		}
	}
	return out
}

// standbys are the EgressServices that a pod is an endpoint of, and that would decide about its packets if another did
// not.
func standbys(w *world.View, p *world.Pod) []handover.Overlap {
	var out []handover.Overlap
	for _, f := range families {
		first := w.EgressServiceOf(p, f)
		if first == nil {
			continue
		}
		for _, s := range w.EgressServicesOf(p, f) {
			if s != first && w.EgressServiceActive(s.Key(), f) {
				out = append(out, handover.Overlap{By: s.Key(), Server: first.Key()})
			}
		}
	}
	return out
}

// standby says which EgressServices decide about all running pods of one; "" if one of these is its own, or it has
// none.
func (d *Decider) standby(s *world.EgressService) string {
	for _, f := range families {
		if len(d.served.Nodes(refTo(s), f)) > 0 {
			return ""
		}
	}
	return d.overlaps.Standing(s.Key(), behind)
}

// behind is what pods are to an EgressService.
const behind = "behind its Service"

// overlapped says whether other EgressServices decide about pods of one, and the Event when that begins.
func (d *Decider) overlapped(s *world.EgressService) (world.Condition, []decide.Event) {
	c := world.Condition{Type: ConditionOverlapped, Status: "False", Reason: ReasonNoOverlap,
		Message: "no other EgressService decides about a pod behind this one's Service"}
	standing := d.overlaps.Standing(s.Key(), behind)
	if standing == "" {
		return c, nil
	}
	c.Status, c.Reason = "True", ReasonServedByOther
	c.Message = fmt.Sprintf("%s; the oldest EgressService that is in force serves a pod", standing)
	if decide.Condition(s.Conditions, ConditionOverlapped).Status == "True" {
		return c, nil
	}
	return c, []decide.Event{{Warning: true, Reason: EventOverlap, Message: c.Message}}
}
