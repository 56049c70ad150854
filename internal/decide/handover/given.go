package handover

import (
	"slices"
	"time"

	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Given are since when the items of an object are what they are. An item that was there before, or is only leaving,
// keeps its time: the node has had the address all the time. A new item gets a time later than all times of the object,
// whatever the clock says: a report about a previous assignment must not count for this one. Items of a controller that
// does not set times have none.
func Given(is *world.Placement, before, items []world.Assignment, now time.Time) []world.Given {
	if slices.Equal(before, items) {
		return is.Given
	}
	since := max(ref.SinceTime(now), latestTime(is)+1)
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

// latestTime is the last time of an object's that anybody can still repeat.
func latestTime(is *world.Placement) (since ref.Since) {
	for _, g := range is.Given {
		since = max(since, g.Since)
	}
	for _, l := range is.Leaving {
		since = max(since, l.Given)
	}
	return since
}
