package egressip

import (
	"encoding/binary"
	"hash/fnv"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/destinations"
)

// quicklyAnew is how many networks ovn-controller makes all flows of anew in a few milliseconds (15 µs a network and
// row).
const quicklyAnew = 256

// divided is a set as OVN's address set has it: a large one with one of its prefixes in two halves. Which one, all of
// them decide together, so that whatever comes or goes, another is divided, and several are added at once.
//
// Of members that are added ovn-controller makes flows for these alone, but not if a single prefix is, of more than one
// address (OVN 25.03, controller/lflow.c, consider_lflow_for_added_as_ips__): there it puts a neighbour beside it, which
// has the very same flow where a mask hides the difference, misses a flow, and makes those of all members anew. One of
// 10,000 took it 125 ms of CPU, two at once 8 ms.
func divided(s destinations.Set) destinations.Set {
	if len(s) <= quicklyAnew {
		return s
	}
	i := dividedOf(s)
	if i < 0 {
		return s
	}
	lower := netip.PrefixFrom(s[i].Addr(), s[i].Bits()+1)
	return slices.Concat(s[:i], destinations.Set{lower, destinations.Upper(lower)}, s[i+1:])
}

// dividedOf is the index of the prefix that is divided; -1, where all are single addresses.
func dividedOf(s destinations.Set) int {
	sum := fnv.New64a()
	var several []int
	for i, p := range s {
		a := p.Addr().As16()
		_, _ = sum.Write(binary.BigEndian.AppendUint16(a[:], uint16(p.Bits()))) // a hash takes all
		if !p.IsSingleIP() {
			several = append(several, i)
		}
	}
	if len(several) == 0 {
		return -1
	}
	return several[sum.Sum64()%uint64(len(several))]
}
