package network

import (
	"fmt"
	"slices"

	"github.com/egret-net/egret/internal/networks"
	"github.com/egret-net/egret/internal/world"
)

// checkConfig says what keeps a network from being this cluster's; "": nothing.
func checkConfig(c *world.Config, n networks.Config) string {
	taken := slices.Concat(c.OwnSubnets(), []world.OwnSubnet{
		{What: "masquerade", CIDR: world.Masquerades(world.V4)},
		{What: "masquerade", CIDR: world.Masquerades(world.V6)}})
	for _, p := range c.MasqueradeSubnets {
		taken = append(taken, world.OwnSubnet{What: "masquerade", CIDR: p})
	}
	for f := range world.Family(2) {
		join := n.JoinOf(f)
		if most, need := world.MaxIDIn(join), c.MaxID(); len(c.Cluster(f)) > 0 && most < need {
			return fmt.Sprintf("join subnet %s has addresses for %d routers, and nodes of this cluster can have numbers up "+
				"to %d: name a larger range, such as a /%d", join, most, need, join.Addr().BitLen()-16)
		}
		for _, t := range taken {
			if len(c.Cluster(f)) > 0 && t.CIDR.Overlaps(join) {
				return fmt.Sprintf("join subnet %s overlaps the cluster's %s subnet %s: name joinSubnets of its own", join,
					t.What, t.CIDR)
			}
		}
		taken = append(taken, world.OwnSubnet{What: "own join", CIDR: join})
	}
	for i, s := range n.Subnets {
		f := world.FamilyOf(s.CIDR.Addr())
		if len(c.Cluster(f)) == 0 {
			return fmt.Sprintf("subnet %s: this cluster has no IP%s", s.CIDR, f)
		}
		for _, t := range taken {
			if t.CIDR.Overlaps(s.CIDR) {
				return fmt.Sprintf("subnet %s overlaps the %s subnet %s: choose another range", s.CIDR, t.What, t.CIDR)
			}
		}
		for _, o := range n.Subnets[:i] {
			if o.CIDR.Overlaps(s.CIDR) {
				return fmt.Sprintf("subnets %s and %s overlap", o.CIDR, s.CIDR)
			}
			if world.FamilyOf(o.CIDR.Addr()) == f && o.NodeLen != s.NodeLen {
				return fmt.Sprintf("subnets %s and %s need the same hostSubnet", o.CIDR, s.CIDR)
			}
		}
	}
	return ""
}
