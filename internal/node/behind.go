package node

import (
	"slices"
	"time"

	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// behindAfter is how long targets may fail before another node should take this one's addresses. OVN or Open vSwitch
// may restart meanwhile.
const behindAfter = time.Minute

// behind measures for how long this node has not carried out a plan. It goes on translating by a former one, and tells
// no other node that it has followed a change of a pod: packets of such pods are dropped there.
type behind struct {
	since time.Time // when targets began to fail; zero: they do not
}

// problemsOf returns a problem of each object that this node holds an address of, once targets have failed for long.
func (b *behind) problemsOf(held map[world.EgressAddress]ref.Since, o Outcome, now time.Time) []world.Problem {
	if o.Err == nil && o.Left == nil {
		b.since = time.Time{}
		return nil
	}
	if b.since.IsZero() {
		b.since = now
	}
	if now.Sub(b.since) < behindAfter {
		return nil
	}
	var out []world.Problem
	for a := range held {
		out = append(out, world.Problem{Object: ref.OfKey(a.Object), Reason: world.ReasonBehind,
			Message: "the node goes on by a former plan: its targets cannot be written. See its problem Unavailable"})
	}
	slices.SortFunc(out, world.Problem.Compare)
	return slices.Compact(out)
}
