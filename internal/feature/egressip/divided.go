package egressip

import (
	"encoding/binary"
	"hash/fnv"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/destinations"
)

// quicklyAnew is how many networks ovn-controller can recompute all flows of in a few milliseconds (15 µs a network and
// row).
const quicklyAnew = 256

// divideLargeSet is the members of a set as OVN's address set has them: of a large one with one of its prefixes in two
// halves. Which one, all of them decide together, so that whatever comes or goes, another is divided, and several are
// added at once.
//
// Of members that are added ovn-controller makes flows for these alone, but not if a single prefix is, of more than one
// address (OVN 25.03, controller/lflow.c, consider_lflow_for_added_as_ips__): it puts a neighbour beside it there, that
// has the same flow where a mask hides the difference, misses a flow, and makes those of all members anew. One of
// 10,000 took it 125 ms of CPU, two at once 8 ms.
func divideLargeSet(s destinations.Set, members []string) []string {
	if len(s) <= quicklyAnew { // a larger one has no prefix that is two members already
		return members
	}
	i := dividedOf(s)
	if i < 0 {
		return members
	}
	lower := netip.PrefixFrom(s[i].Addr(), s[i].Bits()+1)
	return slices.Concat(members[:i], membersOf(destinations.Set{lower, destinations.Upper(lower)}), members[i+1:])
}

// dividedOf is the index of the prefix that is divided; -1, where all are single addresses.
func dividedOf(s destinations.Set) int {
	sum := fnv.New64a()
	several, text := make([]int, 0, len(s)), make([]byte, 0, 18)
	for i, p := range s {
		a := p.Addr().As16()
		text = binary.BigEndian.AppendUint16(append(text[:0], a[:]...), uint16(p.Bits()))
		_, _ = sum.Write(text) // a hash takes all
		if !p.IsSingleIP() {
			several = append(several, i)
		}
	}
	if len(several) == 0 {
		return -1
	}
	return several[sum.Sum64()%uint64(len(several))]
}

// membersOf are prefixes as sets have them. Neither ovn-controller nor nftables is asked to match no bits at all:
// everything is two halves.
func membersOf(s destinations.Set) []string {
	out := make([]string, 0, len(s))
	var text []byte
	for _, p := range s {
		switch {
		case p.IsSingleIP():
			text = p.Addr().AppendTo(text[:0])
		case p.Bits() == 0:
			out = append(out, netip.PrefixFrom(p.Addr(), 1).String())
			text = upperHalf(p).AppendTo(text[:0])
		default:
			text = p.AppendTo(text[:0])
		}
		out = append(out, string(text))
	}
	return out
}
