package ipam

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// ErrFull is in the error of Allocate when a subnet has no free address.
var ErrFull = errors.New("no free pod address")

// Pool gives addresses of the node's subnets. It may be used by several goroutines.
type Pool struct {
	mu      sync.Mutex
	subnets []*subnet
	owned   map[string][]netip.Addr
	// freedAt is when (in releases) an offset was given back last; absent is never.
	freedAt  map[uint32]uint64
	releases uint64
	// start is the offset that a search begins with among those never used by this process. After a restart it is
	// behind the highest one in use, because those below were more likely given back a moment ago.
	start uint32
}

// New makes a pool of one or two subnets, of one family each, in which inUse (addresses by owner) are taken. Addresses
// in use that are in none of the subnets stay their owner's and take no room. Those of said, which pods say they have,
// are given as late as if they had just been given back.
func New(subnets []netip.Prefix, inUse map[string][]netip.Addr, said []netip.Addr) (*Pool, error) {
	p := &Pool{owned: map[string][]netip.Addr{}, start: firstPod, freedAt: map[uint32]uint64{}, releases: 1}
	for _, prefix := range subnets {
		s, err := newSubnet(prefix)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(p.subnets,
			func(o *subnet) bool { return o.prefix.Addr().Is4() == s.prefix.Addr().Is4() }) {
			return nil, fmt.Errorf("pod subnets %v: want one of each family at most; correct the node's subnet "+
				"annotation", subnets)
		}
		p.subnets = append(p.subnets, s)
	}
	if len(p.subnets) == 0 {
		return nil, errors.New("this node has no pod subnet yet: look at the log of egret-controller, which " +
			"allocates it")
	}
	for owner, addrs := range inUse {
		p.adoptOwner(owner, addrs)
	}
	p.noteFreed(said)
	return p, nil
}

func (p *Pool) adoptOwner(owner string, addrs []netip.Addr) {
	p.owned[owner] = slices.Clone(addrs)
	for _, a := range addrs {
		for _, s := range p.subnets {
			if offset, ok := s.offsetOf(a); ok {
				s.takeOffset(offset)
				p.start = max(p.start, offset+1)
			}
		}
	}
}

// Allocate gives owner one address of each subnet, in the order of the subnets. An owner that has addresses gets the
// same again. The error wraps ErrFull and names the subnet that has no address left.
func (p *Pool) Allocate(owner string) ([]netip.Addr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if have, ok := p.owned[owner]; ok {
		return slices.Clone(have), nil
	}
	offsets, err := p.chooseOffsets()
	if err != nil {
		return nil, err
	}
	addrs := make([]netip.Addr, len(offsets))
	for i, s := range p.subnets {
		s.takeOffset(offsets[i])
		addrs[i] = s.addrAt(offsets[i])
	}
	p.owned[owner] = addrs
	return slices.Clone(addrs), nil
}

// Release takes an owner's addresses back; an owner without any is no error.
func (p *Pool) Release(owner string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.releases++
	for _, a := range p.owned[owner] {
		for _, s := range p.subnets {
			if offset, ok := s.offsetOf(a); ok {
				s.dropOffset(offset)
			}
		}
	}
	p.noteFreed(p.owned[owner])
	delete(p.owned, owner)
}

func (p *Pool) noteFreed(addrs []netip.Addr) {
	for _, a := range addrs {
		for _, s := range p.subnets {
			if offset, ok := s.offsetOf(a); ok {
				p.freedAt[offset] = p.releases
			}
		}
	}
}

// Owned returns a copy of every owner's addresses, from which New makes a pool of other subnets.
func (p *Pool) Owned() map[string][]netip.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.owned)
}

// Subnets are the subnets the pool was made of.
func (p *Pool) Subnets() []netip.Prefix {
	all := make([]netip.Prefix, len(p.subnets))
	for i, s := range p.subnets {
		all[i] = s.prefix
	}
	return all
}

// chooseOffsets finds a free offset for each subnet: the same for all if there is one, else each its own.
func (p *Pool) chooseOffsets() ([]uint32, error) {
	offsets := make([]uint32, len(p.subnets))
	if common, ok := p.longestUnused(p.subnets...); ok {
		for i := range offsets {
			offsets[i] = common
		}
		return offsets, nil
	}
	for i, s := range p.subnets {
		offset, ok := p.longestUnused(s)
		if !ok {
			return nil, p.fullError(s)
		}
		offsets[i] = offset
	}
	return offsets, nil
}

// longestUnused is the offset that is free in all of subnets and was not used for the longest time.
func (p *Pool) longestUnused(subnets ...*subnet) (uint32, bool) {
	size := uint32(subnets[0].podCapacity())
	var best uint32
	for i := range size {
		offset := firstPod + (p.start-firstPod+i)%size
		if slices.ContainsFunc(subnets, func(s *subnet) bool { return !s.isFree(offset) }) {
			continue
		}
		if p.freedAt[offset] == 0 {
			return offset, true
		}
		if best == 0 || p.freedAt[offset] < p.freedAt[best] {
			best = offset
		}
	}
	return best, best != 0
}

func (p *Pool) fullError(s *subnet) error {
	var others []string
	for _, o := range p.subnets {
		if o != s {
			others = append(others, fmt.Sprintf("%s: %d of %d", o.prefix, len(o.used), o.podCapacity()))
		}
	}
	err := fmt.Errorf("%w: %d of %d addresses of subnet %s are in use; delete pods of this node or give it a larger "+
		"subnet",
		ErrFull, len(s.used), s.podCapacity(), s.prefix)
	if len(others) > 0 {
		err = fmt.Errorf("%w (%s)", err, strings.Join(others, ", "))
	}
	return err
}
