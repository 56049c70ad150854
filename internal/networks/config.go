package networks

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/world"
)

// ClusterPrefix begins the names of ClusterUserDefinedNetworks' networks.
const ClusterPrefix = "cluster_udn_"

// Config is what the definitions of one network say alike.
type Config struct {
	Name    string
	Subnets []world.ClusterSubnet
	Join    []netip.Prefix // none: the defaults
	MTU     int            // 0: the cluster's
}

// Equal says whether two configurations are the same.
func (c Config) Equal(o Config) bool {
	return c.Name == o.Name && slices.Equal(c.Subnets, o.Subnets) && slices.Equal(c.Join, o.Join) && c.MTU == o.MTU
}

// DefaultJoin are the join subnets of each network that names none: networks do not see each other's.
func DefaultJoin() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("100.65.0.0/16"), netip.MustParsePrefix("fd99::/64")}
}

// JoinOf is the join subnet of a family.
func (c Config) JoinOf(f world.Family) netip.Prefix {
	p, named := f.Of(c.Join)
	if !named {
		p, _ = f.Of(DefaultJoin())
	}
	return p
}

func (c Config) hasFamily(f world.Family) bool {
	return slices.ContainsFunc(c.Subnets,
		func(s world.ClusterSubnet) bool { return world.FamilyOf(s.CIDR.Addr()) == f })
}
