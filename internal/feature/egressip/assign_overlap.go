package egressip

import (
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Overlapper decides one condition of EgressIPs, when all are assigned: whether they stand by for pods that they select
// and that another object serves, in a family that they have addresses of.
type Overlapper struct {
	*handover.Overlaps
	pods *handover.Pods
	concerned
}

// NewOverlapper has decided nothing yet.
func NewOverlapper(pods *handover.Pods) *Overlapper {
	return &Overlapper{handover.NewOverlaps(pods, podOverlaps), pods, newConcerned()}
}

// podOverlaps are a pod's.
func podOverlaps(w *world.View, p *world.Pod) []handover.Overlap {
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

// NoteChanged takes in what changes.
func (d *Overlapper) NoteChanged(e world.Entry) {
	d.pods.NoteChanged(e)
	d.concerned.NoteChanged(e)
}

// Decide says which EgressIPs stand by, of those for which something has changed.
func (d *Overlapper) Decide(v decide.View) (desired []decide.Desired, again time.Time) {
	d.pods.Update(v.World)
	d.Take(d.News)
	for _, e := range d.takeConcerned(v, d.Stale.Forget) {
		c, events := d.Condition(d.Reading(v.World, e.Name), e)
		desired = append(desired, d.desiredCondition(v, e, c, events))
	}
	return desired, time.Time{}
}

// Condition is Overlapped of an EgressIP, and the Event when it begins. It reads the others through w.
func (d *Overlapper) Condition(w *world.View, e *world.EgressIP) (world.Condition, []decide.Event) {
	standing, is := d.Standing(w, e.Name, "that it selects", ref.EgressIP)
	if !is {
		return world.Condition{Type: ConditionOverlapped, Status: "False", Reason: ReasonNoOverlap,
			Message: "no other EgressIP serves a pod that this one selects"}, nil
	}
	c := world.Condition{Type: ConditionOverlapped, Status: "True", Reason: standing.Reason,
		Message: standing.Text + "; the oldest EgressIP that is in force " + standing.Others + " a pod"}
	if conditionOf(e, ConditionOverlapped).Status == "True" {
		return c, nil
	}
	return c, []decide.Event{{Warning: true, Reason: EventOverlap, Message: c.Message}}
}
