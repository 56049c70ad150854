package ipam

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// Host offsets in a pod subnet that are not for pods: 0 is the network, 1 the router, 2 the node's management port.
const (
	gatewayOffset = 1
	firstPod      = 3
	// lastOffset bounds the offsets in use, so that an IPv6 /64 costs the memory and the search of an IPv4 /20, which
	// is many times the pods that a kubelet runs (110 by default).
	lastOffset = 1<<12 - 2
)

// Gateway is the address of the node's router in a pod subnet: the first after the network address.
func Gateway(subnet netip.Prefix) netip.Addr {
	return subnet.Masked().Addr().Next()
}

// subnet is one family's range and how many owners hold each offset. Two owners of one offset exist only when the
// running pods already held it so; it is free again when both are gone.
type subnet struct {
	prefix netip.Prefix
	last   uint32
	used   map[uint32]int
}

func newSubnet(p netip.Prefix) (*subnet, error) {
	if !p.IsValid() || p.Addr().Is4In6() {
		return nil, fmt.Errorf("pod subnet %q is not an IPv4 or IPv6 prefix: correct the node's subnet annotation", p)
	}
	s := &subnet{prefix: p.Masked(), last: lastOffset, used: map[uint32]int{}}
	if bits := p.Addr().BitLen() - p.Bits(); bits < 12 {
		// The highest address is IPv4's broadcast address; IPv6 leaves it out too, so that offsets are the same.
		s.last = uint32(max(1<<bits, 2) - 2)
	}
	if s.last < firstPod {
		return nil, fmt.Errorf("pod subnet %s has no address for pods: give the node a larger one", p)
	}
	return s, nil
}

// podCapacity is how many addresses pods can have.
func (s *subnet) podCapacity() int { return int(s.last - firstPod + 1) }

func (s *subnet) isFree(offset uint32) bool {
	return offset >= firstPod && offset <= s.last && s.used[offset] == 0
}

func (s *subnet) takeOffset(offset uint32) { s.used[offset]++ }

func (s *subnet) dropOffset(offset uint32) {
	if s.used[offset]--; s.used[offset] <= 0 {
		delete(s.used, offset)
	}
}

// addrAt is the address at an offset. Offsets are below 2^12, so the sum stays in the last four bytes.
func (s *subnet) addrAt(offset uint32) netip.Addr {
	b := s.prefix.Addr().AsSlice()
	low := b[len(b)-4:]
	binary.BigEndian.PutUint32(low, binary.BigEndian.Uint32(low)+offset)
	a, _ := netip.AddrFromSlice(b)
	return a
}

// offsetOf is the inverse of addrAt; false when a is not an address of this subnet that pods can have.
func (s *subnet) offsetOf(a netip.Addr) (uint32, bool) {
	if !s.prefix.Contains(a) {
		return 0, false
	}
	b, n := a.AsSlice(), s.prefix.Addr().AsSlice()
	offset := binary.BigEndian.Uint32(b[len(b)-4:]) - binary.BigEndian.Uint32(n[len(n)-4:])
	return offset, offset >= firstPod && offset <= s.last && s.addrAt(offset) == a
}
