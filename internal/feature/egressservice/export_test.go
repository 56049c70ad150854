package egressservice

import (
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
)

// Forget has a Decider decide about everything anew: of the decisions before it knows what people were told.
func (d *Decider) Forget() {
	gone := d.last
	d.Stale, d.pods = decide.NewStale(), handover.NewPods()
	d.served, d.overlaps = handover.NewServed(d.pods, podServers), handover.NewOverlaps(d.pods, podStandbys)
	d.labels, d.loads, d.last, d.begun = newLabels(), map[string]int{}, map[string]decision{}, false
	d.sharing, d.backing = newSharing(), newBacking(d.pods)
	d.patience.Forget()
	for key := range gone {
		d.Objects[key] = struct{}{}
	}
}
