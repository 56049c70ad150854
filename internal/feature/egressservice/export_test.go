package egressservice

import (
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
)

// Forget has a Decider decide about everything anew: of the decisions before it knows what people were told.
func (d *Decider) Forget() {
	gone := d.last
	d.Stale, d.served, d.overlaps = decide.NewStale(), handover.NewServed(podServers), handover.NewOverlaps(podStandbys)
	d.labels, d.loads, d.last, d.begun = newLabels(), map[string]int{}, map[string]decision{}, false
	d.sharing, d.backing = newSharing(), newBacking()
	d.patience.Forget()
	for key := range gone {
		d.Objects[key] = struct{}{}
	}
}
