package handover

import (
	"slices"
	"time"

	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Given are since when the items of an object are what they are. What was one before, or is only leaving, stays as it
// was given: the node has had it all the time. What is new is given now, and later than all that is known of the
// object, whatever the clock: no report of a former giving is one of this. Of an item of a controller of before nobody
// says.
func Given(is *world.Placement, before, items []world.Assignment, now time.Time) []world.Given {
	if slices.Equal(before, items) {
		return is.Given
	}
	since := max(ref.SinceTime(now), latest(is)+1)
	var out []world.Given
	for _, i := range items {
		g := world.Given{Assignment: i, Since: since}
		if slices.Contains(before, i) || is.Leaves(i.Node, i.IP) {
			g.Since = is.Since(i)
		}
		if g.Since != 0 {
			out = append(out, g)
		}
	}
	return out
}

// latest is the last time of an object's that anybody can still repeat.
func latest(is *world.Placement) (since ref.Since) {
	for _, g := range is.Given {
		since = max(since, g.Since)
	}
	for _, l := range is.Leaving {
		since = max(since, l.Given)
	}
	return since
}
