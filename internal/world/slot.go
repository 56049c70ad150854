package world

import "net/netip"

// Slots is the number of ways to one node.
const Slots = 8

// slotBits number the slots, and one bit more tells a slot's two networks apart.
const slotBits = 3

// DefaultSlotSubnets are beside DefaultTransitSubnets.
func DefaultSlotSubnets() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("100.96.0.0/13"), netip.MustParsePrefix("fd96:8::/29")}
}

// SlotTransit is an address of node id where zones meet: each node has one in every slot, and all lead to the same port. OVN keeps the next hops of
// a policy as a set of texts and deals connections out by their order in it. An address each for the slots of one policy makes that order the
// slots' whichever nodes they lead to, and lets two lead to one node. So the subnets are such that the texts of two slots' addresses differ
// before the node's number begins: the slot is the end of the second group, which is not 0.
func (c *Config) SlotTransit(slot, id int, f Family) netip.Prefix { return c.slot(slot, 0, id, f) }

// SlotJoin is the same of the node's own gateway router, as the cluster router of that node sees it; id 1 is the cluster router's.
func (c *Config) SlotJoin(slot, id int, f Family) netip.Prefix { return c.slot(slot, 1, id, f) }

// slot is address id of one half of a slot's share of the subnets.
func (c *Config) slot(slot, half, id int, f Family) netip.Prefix {
	all, ok := f.Of(c.SlotSubnets)
	if !ok {
		return netip.Prefix{}
	}
	b, number := all.Masked().Addr().AsSlice(), slot<<1|half
	for i := range slotBits + 1 {
		if number>>(slotBits-i)&1 != 0 {
			bit := all.Bits() + i
			b[bit/8] |= 0x80 >> (bit % 8)
		}
	}
	a, _ := netip.AddrFromSlice(b)
	share := netip.PrefixFrom(a, all.Bits()+slotBits+1)
	return netip.PrefixFrom(Nth(share, id), share.Bits())
}
