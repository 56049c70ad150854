package egressip

import (
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Overlaps counts the pods that EgressIPs stand by for: those that they select and that another object serves, in a
// family that they have addresses of.
type Overlaps struct{ *handover.Overlaps }

// NewOverlaps has counted nothing yet.
func NewOverlaps() *Overlaps { return &Overlaps{handover.NewOverlaps(overlaps)} }

// overlaps are a pod's.
func overlaps(w *world.View, p *world.Pod) []handover.Overlap {
	var out []handover.Overlap
	for _, f := range w.Config.Families() {
		for _, s := range w.Standbys(p, f) {
			if s.By.Kind != ref.EgressIP {
				continue
			}
			for _, c := range s.For {
				out = append(out, handover.Overlap{By: s.By.Name, Server: c.By})
			}
		}
	}
	return out
}

// Condition is Overlapped of an EgressIP, and the Event when it begins. What it reads of the others it reads through w.
func (o *Overlaps) Condition(w *world.View, e *world.EgressIP) (world.Condition, []decide.Event) {
	standing, is := o.Standing(w, e.Name, "that it selects", ref.EgressIP)
	if !is {
		return world.Condition{Type: ConditionOverlapped, Status: "False", Reason: ReasonNoOverlap,
			Message: "no other EgressIP serves a pod that this one selects"}, nil
	}
	c := world.Condition{Type: ConditionOverlapped, Status: "True", Reason: standing.Reason,
		Message: standing.Text + "; the oldest EgressIP that is in force " + standing.Others + " a pod"}
	if condition(e, ConditionOverlapped).Status == "True" {
		return c, nil
	}
	return c, []decide.Event{{Warning: true, Reason: EventOverlap, Message: c.Message}}
}
