package egressip

import (
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/world"
)

// Assign is one decision about all EgressIPs, from nothing but what the caller says.
func Assign(w *world.World, b Beside) map[string]Decision {
	pods := handover.NewPods()
	a := newAssigner(w, pods)
	a.Beside = b
	for _, name := range w.EgressIPs() {
		a.renewObject(name)
	}
	for _, name := range w.Nodes() {
		a.renewNode(name)
	}
	a.sortObjects()
	pods.Update(w)
	a.placeAll(true)
	out := map[string]Decision{}
	for _, o := range a.objects {
		out[o.e.Name] = a.composeDecision(o)
	}
	return out
}

// Forget has an Assigner decide about everything anew: of the decisions before it knows what they said, how late nodes
// are, and which of them turned Ready or NotReady.
func (d *Assigner) Forget() {
	changed := d.nodes
	d.run, d.pods, d.staleness = nil, handover.NewPods(), newStaleness()
	d.served = NewServed(d.pods)
	d.nodes = changed
	d.patience.Forget()
	for name := range d.last {
		d.Objects[name] = struct{}{}
	}
}

// Forget has an Overlapper decide about everything anew.
func (d *Overlapper) Forget() { *d = *NewOverlapper(handover.NewPods()) }

// Forget has a LinkChecker decide about everything again.
func (d *LinkChecker) Forget() { *d = *NewLinkChecker(handover.NewPods()) }

// Forget makes it decide about everything.
func (d *Selector) Forget() { d.all, d.nodes.known = true, nil }

// Update counts the pods.
func (d *Overlapper) Update(w *world.World) { d.pods.Update(w) }

// Forget makes it look at everything.
func (d *Marker) Forget() { d.last, d.stale = map[string]markState{}, true }

// MarkOf is the mark of an object with a UID, where no other has it.
func MarkOf(uid string) int { return marks{}.freeMark(uid) }
