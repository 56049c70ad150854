package world

import (
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
)

// MaxSlots is the number of ECMP slots: one for each address that an EgressIP may have (its CRD's maxItems).
const MaxSlots = 64

// CommonSlots are always there in the default network: routers have addresses in them, and nodes that host egress IPs
// are bound to theirs. Of the slots beyond, and of all slots of a network of users, a router has as many as the
// EgressIP with the most addresses needs (View.Slots). The policy that steers by such a slot binds its next hop.
const CommonSlots = 8

// commonSlotBits number the common slots, and one bit more tells a slot's two networks apart.
const commonSlotBits = 3

// DefaultSlotSubnets are beside DefaultTransitSubnets, for the common slots. Their addresses are next hops in OVN's
// tables, and in no packet.
func DefaultSlotSubnets() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("100.96.0.0/13"), netip.MustParsePrefix("fd96:8::/29")}
}

// FurtherSlotSubnets are for the slots beyond the common ones. They are fixed, for few networks have such texts.
func FurtherSlotSubnets() []netip.Prefix { return []netip.Prefix{furtherSlotsV4, furtherSlotsV6} }

// CheckSlotSubnet refuses a range in which the texts of two slots' addresses might compare otherwise for another node,
// see SlotTransit.
func CheckSlotSubnet(p netip.Prefix) error {
	f := FamilyOf(p.Addr())
	like := DefaultSlotSubnets()[f]
	group := p.Addr().AsSlice()[2*f : 2*f+2]
	if p.Bits() != like.Bits() || f == V6 && group[0] == 0 && group[1] == 0 {
		return fmt.Errorf("%s does not do: its length is to be %d, and an IPv6 range's second group not 0, as of %s", p,
			like.Bits(), like)
	}
	return nil
}

// The subnets of the slots beyond the common ones. IPv4 is short of a place where the text of a group has three digits
// always: the one from 240 on is in no network.
var (
	furtherSlotsV4 = netip.PrefixFrom(netip.AddrFrom4([4]byte{254}), 8)
	furtherSlotsV6 = netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 0x96, 0x10}), 25)
)

// SlotTransit is an address of node id where zones meet: each node has one in every slot, and all lead to the same
// port. OVN keeps the next hops of a policy as a set of texts and deals connections out by their order in it. An
// address each for the slots of one policy makes that order the slots' whichever nodes they lead to, and lets two lead
// to one node. So the subnets are such that the texts of two slots' addresses differ before the node's number begins:
// the slot is the end of the second group, which is not 0.
func (c *Config) SlotTransit(slot, id int, f Family) netip.Prefix {
	return c.slotAddress(slot, 0, id, f)
}

// SlotJoin is the same of the node's own gateway router, as the cluster router of that node sees it; id 1 is the
// cluster router's.
func (c *Config) SlotJoin(slot, id int, f Family) netip.Prefix { return c.slotAddress(slot, 1, id, f) }

// IsNextHop reports whether an address leads to node id from another zone: its transit address, or one in a slot.
func (c *Config) IsNextHop(hop netip.Addr, id int) bool {
	f := FamilyOf(hop)
	for slot := range MaxSlots {
		if c.SlotTransit(slot, id, f).Addr() == hop {
			return true
		}
	}
	return c.Transit(id, f).Addr() == hop
}

// slotAddress is address id of one half of a slot's share of the subnets.
func (c *Config) slotAddress(slot, half, id int, f Family) netip.Prefix {
	if slot >= CommonSlots {
		return furtherSlot((slot-CommonSlots)<<1|half, id, f)
	}
	all, ok := f.Of(c.SlotSubnets)
	if !ok {
		return netip.Prefix{}
	}
	b, number := all.Masked().Addr().AsSlice(), slot<<1|half
	for i := range commonSlotBits + 1 {
		if number>>(commonSlotBits-i)&1 != 0 {
			bit := all.Bits() + i
			b[bit/8] |= 0x80 >> (bit % 8)
		}
	}
	a, _ := netip.AddrFromSlice(b)
	share := netip.PrefixFrom(a, all.Bits()+commonSlotBits+1)
	return netip.PrefixFrom(Nth(share, id), share.Bits())
}

// furtherSlot is address id of the half of that number of the slots beyond the common ones. The second group has as
// many digits whatever the number is, so that texts compare as numbers do.
func furtherSlot(number, id int, f Family) netip.Prefix {
	a, length := netip.AddrFrom4([4]byte{254, byte(100 + number)}), 16
	if f == V6 {
		a, length = netip.AddrFrom16([16]byte{0xfd, 0x96, 0x10, byte(number)}), 32
	}
	return netip.PrefixFrom(Nth(netip.PrefixFrom(a, length), id), length)
}

// Slots is the number of slots of a family that a network's routers need addresses in. A network of users has none
// until an EgressIP with several addresses selects one of its namespaces: they cost its cluster router half of its
// logical flows.
func (w *View) Slots(network string, f Family) int {
	n := w.Network(network)
	switch {
	case n == nil:
		return 0
	case n.ID == 0:
		w.noteRead(KindSlots, "")
		return max(mostSlots(maps.Values(w.egressIPs))[f], CommonSlots)
	}
	slots := 0
	for _, ns := range n.Namespaces {
		w.noteRead(KindSlots, ns)
		slots = max(slots, mostSlots(slices.Values(w.selecting[ns]))[f])
	}
	return slots
}

// mostSlots is how many slots the EgressIP with the most addresses needs, by family.
func mostSlots(list iter.Seq[*EgressIP]) (n [2]int) {
	for e := range list {
		own := e.ownSlots()
		n[V4], n[V6] = max(n[V4], own[V4]), max(n[V6], own[V6])
	}
	return n
}

// SlotAddresses are the addresses of a family that have a slot each, in order: the requested ones; those of the status
// while it has none of them, for the controller has not decided about them yet.
func (e *EgressIP) SlotAddresses(f Family) []netip.Addr {
	requested := f.OfAddrs(e.IPs)
	var others []netip.Addr
	for _, a := range e.Items {
		if slices.Contains(requested, a.IP) {
			return requested[:min(len(requested), MaxSlots)]
		}
		others = append(others, a.IP)
	}
	if others = f.OfAddrs(others); len(others) > 0 {
		return others[:min(len(others), MaxSlots)]
	}
	return requested[:min(len(requested), MaxSlots)]
}

// ownSlots is how many slots an EgressIP needs, by family; 0 where it has one address.
func (e *EgressIP) ownSlots() (n [2]int) {
	if e == nil || len(e.IPs) <= 1 && len(e.Items) <= 1 {
		return n
	}
	for f := range n {
		if n[f] = len(e.SlotAddresses(Family(f))); n[f] == 1 {
			n[f] = 0
		}
	}
	return n
}

// noteSlots follows a change of the number of slots that are needed in a namespace; "": in the default network.
func (w *World) noteSlots(ns string, old, now [2]int) {
	if old != now {
		w.noteChanged(KindSlots, ns)
	}
}

// JoinMAC is the hardware address of node id's gateway router on the join switch; id 1 is the cluster router's.
func (c *Config) JoinMAC(id int) string { return MAC(c.Join(id, c.Families()[0]).Addr()) }

// TransitMAC is the hardware address of node id's cluster router on the transit switch.
func (c *Config) TransitMAC(id int) string { return MAC(c.Transit(id, c.Families()[0]).Addr()) }
