package decide

import (
	"slices"
	"time"

	"github.com/egret-net/egret/internal/world"
)

// maxMessage, in runes, is a little less than the API takes (metav1.Condition): a longer message would keep the whole
// status from being written.
const maxMessage = 30 << 10

// Condition is the condition of a type among others, or none.
func Condition(all []world.Condition, kind string) world.Condition {
	if i := slices.IndexFunc(all, func(c world.Condition) bool { return c.Type == kind }); i >= 0 {
		return all[i]
	}
	return world.Condition{}
}

// Dated are conditions of an object that was as in old, of a generation: each says since when its status is what it is.
func Dated(old []world.Condition, generation int64, now time.Time, conditions ...world.Condition) []world.Condition {
	for i := range conditions {
		c := &conditions[i]
		c.Generation, c.Message = generation, world.Plain(c.Message, maxMessage)
		if was := Condition(old, c.Type); was.Status == c.Status {
			c.Since = was.Since
		} else {
			c.Since = now.UTC().Truncate(time.Second) // as exact as the API keeps it
		}
	}
	return conditions
}
