package egressip

import (
	"maps"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// Overlapper decides one condition of EgressIPs: whether they stand by for pods, as it is when all are assigned.
type Overlapper struct {
	*Overlaps
	readers *world.Readers[string] // of what was decided, by EgressIP
	begun   bool                   // false: nothing was decided yet
}

// NewOverlapper has decided nothing yet.
func NewOverlapper() *Overlapper {
	return &Overlapper{Overlaps: NewOverlaps(), readers: world.NewReaders[string]()}
}

// Touched tells of all that changes.
func (d *Overlapper) Touched(touched []world.Touch) {
	d.Touch(touched)
	for _, t := range touched {
		maps.Copy(d.News, d.readers.Of(t))
		if t.Kind == world.KindEgressIP {
			d.News[t.Key] = struct{}{}
		}
	}
}

// Seen notes that an EgressIP may say something else of itself.
func (d *Overlapper) Seen(_ decide.View, object world.Touch) time.Time {
	if object.Kind == world.KindEgressIP {
		d.News[object.Key] = struct{}{}
	}
	return time.Time{}
}

// Decide says which EgressIPs stand by, of those for which something has changed.
func (d *Overlapper) Decide(v decide.View) (desired []decide.Desired, again time.Time) {
	d.Update(v.World)
	if !d.begun {
		d.begun = true
		for _, name := range v.EgressIPs() {
			d.News[name] = struct{}{}
		}
	}
	names := slices.Sorted(maps.Keys(d.News))
	clear(d.News)
	for _, name := range names {
		if e := v.EgressIP(name); e != nil {
			desired = append(desired, d.desired(v, e))
		} else {
			d.readers.Forget(name)
		}
	}
	return desired, time.Time{}
}

// desired is an EgressIP with the condition. As long as it does not say so, it is decided about again.
func (d *Overlapper) desired(v decide.View, e *world.EgressIP) decide.Desired {
	c, events := d.Condition(d.readers.Reading(v.World, e.Name), e)
	out := ofEgressIP(e, decide.Dated(e.Conditions, e.Generation, v.Now, c), events)
	if !say(e, out.Decision.Conditions) {
		d.News[e.Name] = struct{}{}
	}
	return out
}
