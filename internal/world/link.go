package world

import (
	"net/netip"
	"slices"
)

// Link is a link of the host beside its primary network, with global addresses: egress IPs of their subnets can be on
// it.
type Link struct {
	Name  string
	Index int
	MAC   string
	// Addrs are the host's own, egress IPs left out, with the length of their subnets; sorted.
	Addrs []netip.Prefix
	// VRF is the device that the link is enslaved to, or "".
	VRF string
	// Routes lead out by the link: those of the main table, or of its VRF's; sorted by destination, each once.
	Routes []LinkRoute
	// Fault says, by Family, why the link can host nothing now, and what to do; "" if it can.
	Fault [2]string
}

// LinkRoute is a route by a link. Via may be zero: on link; an IPv4 route's may be of IPv6.
type LinkRoute struct {
	Dst netip.Prefix
	Via netip.Addr
	MTU int // 0: the link's
	// OnLink: Via is on the link, though no route says so.
	OnLink bool
}

func (l Link) equalLink(o Link) bool {
	return l.Name == o.Name && l.Index == o.Index && l.MAC == o.MAC && l.VRF == o.VRF && l.Fault == o.Fault &&
		slices.Equal(l.Addrs, o.Addrs) && slices.Equal(l.Routes, o.Routes)
}

// LinkFor says where an egress IP is on this host: on the primary network, or on a link; both false and nil if in none
// of its networks, or if the link cannot host it now. The longest prefix decides (seed egress-ip.md); of links with the
// same subnet it is the first by name that can. On a host that is not known (nil) it is nowhere.
func (h *Host) LinkFor(ip netip.Addr) (primary bool, link *Link) {
	if h == nil {
		return false, nil
	}
	best := -1
	for _, p := range h.Primary {
		if p.Masked().Contains(ip) && p.Bits() > best {
			best, primary = p.Bits(), true
		}
	}
	for i := range h.Links {
		for _, p := range h.Links[i].Addrs {
			if !hasHostRoom(p) || !p.Masked().Contains(ip) || p.Bits() < best {
				continue
			}
			if p.Bits() > best || link == nil && !primary {
				best, primary, link = p.Bits(), false, h.Links[i].unlessFaulty(FamilyOf(ip))
			}
		}
	}
	return primary, link
}

func (l *Link) unlessFaulty(f Family) *Link {
	if l.Fault[f] != "" {
		return nil
	}
	return l
}

// hasHostRoom says whether there is room beside an address in its subnet.
func hasHostRoom(p netip.Prefix) bool { return p.Bits() < p.Addr().BitLen() }

// CIDRs are the host's addresses as it publishes them: with the length of their subnets where egress IPs can be, else
// alone.
func (h *Host) CIDRs() []netip.Prefix {
	lengths := map[netip.Addr]netip.Prefix{}
	for _, p := range h.Primary {
		lengths[p.Addr()] = p
	}
	for _, l := range h.Links {
		for _, p := range l.Addrs {
			if l.Fault[FamilyOf(p.Addr())] == "" {
				lengths[p.Addr()] = p
			}
		}
	}
	var out []netip.Prefix
	for _, a := range h.Addrs {
		if p, ok := lengths[a]; ok {
			out = append(out, p)
		} else {
			out = append(out, Single(a))
		}
	}
	return out
}

// Faults are the host's subnets that can host no egress IP now, with the reason and what to do: those that no other
// link has, nor the primary network.
func (h *Host) Faults() map[netip.Prefix]string {
	out, well := map[netip.Prefix]string{}, slices.Clone(h.Primary)
	for _, l := range h.Links {
		for _, p := range l.Addrs {
			switch fault := l.Fault[FamilyOf(p.Addr())]; {
			case fault == "":
				well = append(well, p)
			case hasHostRoom(p) && out[p.Masked()] == "":
				out[p.Masked()] = fault
			}
		}
	}
	for _, p := range well {
		delete(out, p.Masked())
	}
	return out
}

// Networks are the subnets that a node has addresses in, the primary network's first.
func (n *Node) Networks() []netip.Prefix {
	if n == nil {
		return nil
	}
	var out []netip.Prefix
	for _, p := range slices.Concat(n.Primary, n.CIDRs) {
		if m := p.Masked(); hasHostRoom(p) && !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

// Confirms says whether people confirm that a network is one of a node's.
func (n *Node) Confirms(p netip.Prefix) bool {
	return slices.ContainsFunc(n.Confirmed, func(c netip.Prefix) bool { return c.Masked() == p })
}
