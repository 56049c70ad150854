package zone_test

import (
	"fmt"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/world"
)

// TestAllocatesToCompetingNodes: over any history in which nodes want the same ids, subnets, addresses and hardware
// addresses, and wait for one another, one that decides when something has changed says what one says that decides
// about everything.
func TestAllocatesToCompetingNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ranges := []string{"10.244.0.0/22/24,fd00:10:244::/62/64", "10.244.0.0/23/24"}
		subnets := rapid.SampledFrom(ranges).Draw(t, "ranges")
		some, all := termOf(newWorld(subnets)), termOf(newWorld(subnets))
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			wantSame(t, some, all, drawCompetitor(t, all.w))
		}
	})
}

// drawCompetitor is a node that comes, is made anew, changes, is shown as it was decided, or goes.
func drawCompetitor(t *rapid.T, w *world.World) func(*world.World) {
	name := fmt.Sprint("n", rapid.IntRange(0, 6).Draw(t, "node"))
	n := world.Node{}
	if said := w.Said(name); said != nil {
		n = *said
	}
	switch what := rapid.IntRange(0, 5).Draw(t, "what"); {
	case what == 0:
		return func(w *world.World) { w.DelNode(name) }
	case what == 1 || n.Name == "":
		n = *node(name, rapid.IntRange(0, 5).Draw(t, "id"), drawSubnets(t)...)
		n.UID = fmt.Sprint(rapid.IntRange(0, 1000).Draw(t, "uid"))
	case what == 2:
		return func(w *world.World) {
			if _, should := world.Undone[world.Node](w, world.KindNode, name); should != nil {
				w.SetNode(should)
				return
			}
		}
	case what == 3:
		n.UplinkMAC = compiletest.HardwareAddr(fmt.Sprint("02:00:00:00:00:0", rapid.IntRange(2, 4).Draw(t, "MAC")))
	default:
		n.Primary = []netip.Prefix{netip.PrefixFrom(drawAddr(t), 24)}
		n.Gateways = []netip.Addr{drawAddr(t)}
	}
	return func(w *world.World) { w.SetNode(&n) }
}

func drawAddr(t *rapid.T) netip.Addr {
	return compiletest.V4(172, 18, 0, rapid.IntRange(1, 4).Draw(t, "address"))
}

func drawSubnets(t *rapid.T) []string {
	all := []string{"10.244.0.0/24", "10.244.1.0/24", "fd00:10:244::/64", "fd00:10:244:1::/64", "10.9.0.0/24"}
	return rapid.SliceOfN(rapid.SampledFrom(all), 0, 2).Draw(t, "subnets")
}
