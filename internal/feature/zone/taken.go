package zone

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// taken indexes what all nodes have, so that a decision about one node does not look at the others.
type taken struct {
	by       map[string]*world.Node // the nodes as they were indexed
	ids      index[int]
	pools    map[string]*pool  // of node subnets, by network
	addrs    index[netip.Addr] // recorded ones, of nodes that claim nothing else
	macs     index[world.HardwareAddr]
	gateways index[netip.Addr] // of nodes that are recorded
	id       int               // no lower one is free
	resting  resting
}

// pool is the node subnets of one network.
type pool struct {
	taken index[netip.Prefix]
	from  [2]position // by family: no subnet before it is free
}

// position is that of a node subnet: which cluster subnet it is a part of, and the number of the part.
type position struct{ subnet, part int }

func newTaken() *taken {
	return &taken{by: map[string]*world.Node{}, ids: index[int]{}, pools: map[string]*pool{},
		addrs: index[netip.Addr]{}, macs: index[world.HardwareAddr]{}, gateways: index[netip.Addr]{},
		id: world.FirstID}
}

// index lists the nodes that have a thing, sorted by name.
type index[K comparable] map[K][]string

// last returns the last node by name that has a thing; "" if no node has it.
func (x index[K]) last(key K) string {
	if names := x[key]; len(names) > 0 {
		return names[len(names)-1]
	}
	return ""
}

// putNode replaces a node; nil: it is gone.
func (t *taken) putNode(name string, now *world.Node) {
	old := t.by[name]
	if old == now {
		return
	}
	if old != nil {
		t.noteNode(old, false)
		if now == nil || old.ID != now.ID || !slices.Equal(old.Subnets, now.Subnets) ||
			!world.SameParts(old.Further, now.Further) {
			t.searchAnew()
		}
	}
	if t.by[name] = now; now == nil {
		delete(t.by, name)
		return
	}
	t.noteNode(now, true)
}

// searchAnew is for when something may be free again.
func (t *taken) searchAnew() {
	t.id = world.FirstID
	for _, p := range t.pools {
		p.from = [2]position{}
	}
}

// giveNode notes that a node has what it was allocated.
func (t *taken) giveNode(n *world.Node, a Allocation) {
	given := *n
	given.ID, given.Subnets, given.Further = a.ID, a.Subnets, a.Further
	t.putNode(n.Name, &given)
}

func (t *taken) noteNode(n *world.Node, is bool) {
	if n.ID != 0 {
		world.NoteInIndex(t.ids, n.ID, n.Name, is)
	}
	t.noteSubnets(ref.DefaultNetwork, n, is)
	for network := range n.Further {
		t.noteSubnets(network, n, is)
	}
	if n.Record.MAC.IsValid() && (n.UplinkMAC == n.Record.MAC || !n.UplinkMAC.IsValid()) {
		world.NoteInIndex(t.macs, n.Record.MAC, n.Name, is)
	}
	for _, ip := range n.Record.Addrs {
		if p, claims := world.FamilyOf(ip).Of(n.Primary); !claims || p.Addr() == ip {
			world.NoteInIndex(t.addrs, ip, n.Name, is)
		}
	}
	if len(n.Record.Addrs) > 0 {
		for _, g := range n.Gateways {
			world.NoteInIndex(t.gateways, g, n.Name, is)
		}
	}
}

func (t *taken) noteSubnets(network string, n *world.Node, is bool) {
	p := t.poolOf(network)
	for _, subnet := range n.In(network).Subnets {
		world.NoteInIndex(p.taken, subnet, n.Name, is)
	}
	if len(p.taken) == 0 {
		delete(t.pools, network)
	}
}

func (t *taken) poolOf(network string) *pool {
	p := t.pools[network]
	if p == nil {
		p = &pool{taken: index[netip.Prefix]{}}
		t.pools[network] = p
	}
	return p
}

// freeID returns the lowest id that no node has, or 0 if all up to the highest are taken.
func (t *taken) freeID(highest int) int {
	for ; t.id <= highest; t.id++ {
		if len(t.ids[t.id]) == 0 {
			return t.id
		}
	}
	return 0
}

// freeSubnet returns a subnet of a family and network that no node has: the node's former one, or the lowest, and one
// that rests for another node if there is no other.
func (t *taken) freeSubnet(net *world.Network, f world.Family, node string) (netip.Prefix, bool) {
	p := t.poolOf(net.Name)
	others, own := t.resting.subnetsFor(node, net.Name, f)
	if own.IsValid() && net.NodeSubnet(own) && len(p.taken[own]) == 0 {
		return own, true
	}
	var spare netip.Prefix
	for at := p.from[f]; at.subnet < len(net.Subnets); at = (position{at.subnet + 1, 0}) {
		s := net.Subnets[at.subnet]
		for ; world.FamilyOf(s.CIDR.Addr()) == f && at.part < countNodeSubnets(s); at.part++ {
			one := nthNodeSubnet(s, at.part)
			if len(p.taken[one]) > 0 {
				continue
			}
			if !spare.IsValid() {
				p.from[f], spare = at, one
			}
			if !others[one] {
				return one, true
			}
		}
	}
	if !spare.IsValid() {
		p.from[f] = position{subnet: len(net.Subnets)}
	}
	return spare, spare.IsValid()
}

// mostParts is the length of the highest id in bits: of a cluster subnet so many parts are enough.
const mostParts = 15

// countNodeSubnets returns how many node subnets a cluster subnet has.
func countNodeSubnets(s world.ClusterSubnet) int { return 1 << min(s.NodeLen-s.CIDR.Bits(), mostParts) }

// nthNodeSubnet returns the n-th node subnet of a cluster subnet.
func nthNodeSubnet(s world.ClusterSubnet, n int) netip.Prefix {
	a := s.CIDR.Masked().Addr()
	b := a.As16()
	for i := 128 - a.BitLen() + s.NodeLen - 1; n > 0; i, n = i-1, n>>1 {
		if n&1 == 1 {
			b[i/8] |= 0x80 >> (i % 8)
		}
	}
	if a.Is4() {
		return netip.PrefixFrom(netip.AddrFrom16(b).Unmap(), s.NodeLen)
	}
	return netip.PrefixFrom(netip.AddrFrom16(b), s.NodeLen)
}
