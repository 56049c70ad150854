package zone

import (
	"fmt"
	"math/bits"
	"net/netip"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// FirstID is the lowest id of a node.
const FirstID = world.FirstID

// lastID is the highest key that a port of a logical switch can have: a node's id is the key of its port on
// transit_switch.
const lastID = 1<<15 - 1

// Allocation is what a node gets from the controller.
type Allocation struct {
	ID            int            // 0: none is free
	Subnets       []netip.Prefix // one a family, in the order of the families; fewer where none is free
	Join, Transit []netip.Prefix // the node's addresses there, one a family
	Record        world.Record   // the addresses it names that are the node's own
	// Problems say what was wrong or is lacking, and what to do.
	Problems []decide.Notice
}

// Reasons of findings about nodes.
const (
	notBelieved    = "NotBelieved" // as the node itself reports
	idOutOfRange   = "IDOutOfRange"
	idTaken        = "IDTaken"
	noIDFree       = "NoIDFree"
	subnetUnusable = "SubnetUnusable"
	noSubnetFree   = "NoSubnetFree"
)

// refuse notes what was found, with the words for it.
func (a *Allocation) refuse(f decide.Finding, format string, args ...any) {
	f.Kind = reasonAllocation
	a.Problems = append(a.Problems, decide.Notice{Finding: f, Event: reasonAllocation,
		Message: fmt.Sprintf(format, args...)})
}

// Allocate gives each node an id and pod subnets, and says what is recorded of it. A node keeps what it has and may
// have. Of two nodes with the same subnet or number, the one that the world believes keeps it. Others get the lowest
// that is free. A node that is going away keeps its own until it is gone.
func Allocate(w *world.View) map[string]Allocation {
	names := w.Nodes()
	out := make(map[string]Allocation, len(names))
	for _, name := range names {
		var a Allocation
		for _, p := range w.Node(name).Problems {
			a.refuse(decide.Finding{Reason: notBelieved, Part: p.About, Node: p.Owner}, "%s", p.Text)
		}
		out[name] = a
	}
	allocateIDs(w, names, out)
	for _, f := range w.Config.Families() {
		allocateSubnets(w, names, f, out)
	}
	record(w, names, out)
	for _, name := range names {
		a := out[name]
		a.Join, a.Transit = addresses(w.Config, a.ID)
		out[name] = a
	}
	return out
}

func addresses(c *world.Config, id int) (join, transit []netip.Prefix) {
	if id == 0 {
		return nil, nil
	}
	for _, f := range c.Families() {
		join, transit = append(join, c.Join(id, f)), append(transit, c.Transit(id, f))
	}
	return join, transit
}

func allocateIDs(w *world.View, names []string, out map[string]Allocation) {
	owner, highest := map[int]string{}, w.Config.MaxID()
	for _, name := range names {
		a, id := out[name], w.Node(name).ID
		switch {
		case id == 0:
		case id < FirstID || id > highest:
			a.refuse(decide.Finding{Reason: idOutOfRange}, "id %d is not between %d and %d: the node gets another", id,
				FirstID, highest)
		case owner[id] != "":
			a.refuse(decide.Finding{Reason: idTaken, Node: owner[id]},
				"id %d is also node %s's: the node gets another", id, owner[id])
		default:
			owner[id], a.ID = name, id
		}
		out[name] = a
	}
	next := FirstID
	for _, name := range names {
		a := out[name]
		if a.ID != 0 {
			continue
		}
		for next <= highest && owner[next] != "" {
			next++
		}
		if next > highest {
			a.refuse(decide.Finding{Reason: noIDFree},
				"no id up to %d is free: delete nodes that are gone, or use larger join and transit subnets", highest)
		} else {
			owner[next], a.ID = name, next
		}
		out[name] = a
	}
}

// allocateSubnets gives each node a subnet of a family.
func allocateSubnets(w *world.View, names []string, f world.Family, out map[string]Allocation) {
	owner, has := map[netip.Prefix]string{}, map[string]bool{}
	for _, name := range names {
		a := out[name]
		for _, p := range w.Node(name).Subnets {
			if world.FamilyOf(p.Addr()) != f {
				continue
			}
			if why := unusable(w.Config, p, owner, has[name]); why != "" {
				a.refuse(decide.Finding{Reason: subnetUnusable, Part: p.String(), Node: owner[p]},
					"subnet %s %s: the node does not use it", p, why)
				continue
			}
			owner[p], has[name] = name, true
			a.Subnets = append(a.Subnets, p)
		}
		out[name] = a
	}
	free := freeSubnets(w.Config, f, owner)
	for _, name := range names {
		if a := out[name]; !has[name] {
			if p, ok := free(); ok {
				owner[p] = name
				a.Subnets = append(a.Subnets, p)
			} else {
				a.refuse(decide.Finding{Reason: noSubnetFree, Family: f},
					"no IP%s subnet is free in %v: delete nodes that are gone, or add a cluster subnet", f,
					w.Config.Cluster(f))
			}
			out[name] = a
		}
	}
}

// unusable says why a node cannot keep a subnet, or "".
func unusable(c *world.Config, p netip.Prefix, owner map[netip.Prefix]string, has bool) string {
	switch {
	case owner[p] != "":
		return "is also node " + owner[p] + "'s"
	case has:
		return "is the node's second one of its family"
	case p != p.Masked():
		return "is an address and not a subnet"
	}
	for _, s := range c.ClusterSubnets {
		if s.CIDR.Contains(p.Addr()) && p.Bits() == s.NodeLen {
			return ""
		}
	}
	return "is no node's part of the cluster subnets"
}

// freeSubnets yields the subnets of a family that nobody has, the lowest first.
func freeSubnets(c *world.Config, f world.Family, owner map[netip.Prefix]string) func() (netip.Prefix, bool) {
	of, n := 0, 0
	return func() (netip.Prefix, bool) {
		for ; of < len(c.ClusterSubnets); of, n = of+1, 0 {
			s := c.ClusterSubnets[of]
			for ; world.FamilyOf(s.CIDR.Addr()) == f && n < parts(s); n++ {
				if p := part(s, n); owner[p] == "" {
					return p, true
				}
			}
		}
		return netip.Prefix{}, false
	}
}

// parts is how many node subnets a cluster subnet has; more than there can be ids are not looked at.
func parts(s world.ClusterSubnet) int {
	return 1 << min(s.NodeLen-s.CIDR.Bits(), bits.Len(lastID))
}

// part is the n-th node subnet of a cluster subnet.
func part(s world.ClusterSubnet, n int) netip.Prefix {
	b := s.CIDR.Masked().Addr().AsSlice()
	for i := s.NodeLen - 1; n > 0; i, n = i-1, n>>1 {
		if n&1 == 1 {
			b[i/8] |= 0x80 >> (i % 8)
		}
	}
	a, _ := netip.AddrFromSlice(b)
	return netip.PrefixFrom(a, s.NodeLen)
}
