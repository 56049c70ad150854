package zone

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// restsFor is how long the subnets of a deleted Node rest: another Node gets one only if no other is free, and a Node
// of the same name gets its own back. The machine and its pods may have gone on, and register again.
const restsFor = 10 * time.Minute

// resting has the last subnet of deleted Nodes.
type resting map[restingKey]former

type restingKey struct {
	node, network string
	family        world.Family
}

type former struct {
	subnet netip.Prefix
	since  time.Time
}

// expire drops what has rested long enough.
func (r resting) expire(now time.Time) {
	maps.DeleteFunc(r, func(_ restingKey, x former) bool { return now.Sub(x.since) >= restsFor })
}

// note adds what a Node had.
func (r resting) note(node string, had Allocation, now time.Time) {
	n := world.Node{Subnets: had.Subnets, Further: had.Further}
	for _, network := range append(slices.Collect(maps.Keys(n.Further)), ref.DefaultNetwork) {
		for _, s := range n.In(network).Subnets {
			r[restingKey{node, network, world.FamilyOf(s.Addr())}] = former{s, now}
		}
	}
}

// subnetsFor returns the subnets of a network that rest for other nodes, and the node's own former one.
func (r resting) subnetsFor(node, network string, f world.Family) (others map[netip.Prefix]bool, own netip.Prefix) {
	others = map[netip.Prefix]bool{}
	for key, x := range r {
		switch {
		case key.network != network || key.family != f:
		case key.node == node:
			own = x.subnet
		default:
			others[x.subnet] = true
		}
	}
	return others, own
}
