package settings

import (
	"flag"
	"fmt"
	"net/netip"

	"github.com/egret-net/egret/internal/world"
)

// Subnets are the ranges that the cluster gives out; agents and controllers are to be told the same.
type Subnets struct {
	cluster, service string
	join, transit    [2]string // by world.Family
}

// SubnetFlags registers the flags. Into is to be called when they are parsed.
func SubnetFlags(f *flag.FlagSet) *Subnets {
	s := &Subnets{}
	f.StringVar(&s.cluster, "cluster-subnets", "10.244.0.0/16/24",
		"`ranges` of pod addresses, each with the length of a node's part: 10.244.0.0/16/24,fd00:10:244::/48/64")
	f.StringVar(&s.service, "service-subnets", "10.96.0.0/16", "`ranges` of cluster IPs: 10.96.0.0/16,fd00:10:96::/112")
	for i, v := range []string{"v4", "v6"} {
		f.StringVar(&s.join[i], "gateway-"+v+"-join-subnet", world.DefaultJoinSubnets()[i].String(),
			"`range` in which gateway routers meet the cluster router, with room for "+roomText)
		f.StringVar(&s.transit[i], "cluster-manager-"+v+"-transit-subnet", world.DefaultTransitSubnets()[i].String(),
			"`range` in which nodes' cluster routers meet, with room for "+roomText)
	}
	return s
}

// room is how many bits of an address a node's id has, in the ranges where routers meet.
const room, roomText = 16, "65,536 addresses"

// pair reads a range a family.
func pair(flag string, of [2]string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for i, text := range of {
		name := "--" + fmt.Sprintf(flag, []string{"v4", "v6"}[i])
		p, err := netip.ParsePrefix(text)
		switch {
		case err != nil || p != p.Masked():
			return nil, fmt.Errorf("%s %q is no range: write one such as %s", name, text,
				[]string{"100.64.0.0/16", "fd98::/64"}[i])
		case p.Addr().Is4() != (i == 0):
			return nil, fmt.Errorf("%s %s is of the other family", name, p)
		case p.Addr().BitLen()-p.Bits() < room:
			return nil, fmt.Errorf("%s %s is too small: give one with room for %s, such as %s", name, p, roomText,
				netip.PrefixFrom(p.Addr(), p.Addr().BitLen()-room).Masked())
		}
		out = append(out, p)
	}
	return out, nil
}

// Into writes all ranges into c, the fixed ones too, and refuses those that have addresses in common.
func (s *Subnets) Into(c *world.Config) (err error) {
	c.SlotSubnets = world.DefaultSlotSubnets()
	if c.JoinSubnets, err = pair("gateway-%s-join-subnet", s.join); err != nil {
		return err
	}
	if c.TransitSubnets, err = pair("cluster-manager-%s-transit-subnet", s.transit); err != nil {
		return err
	}
	if c.ClusterSubnets, err = world.ParseClusterSubnets(s.cluster); err != nil {
		return err
	}
	if c.ServiceSubnets, err = world.ParseSubnets(s.service); err != nil {
		return err
	}
	return c.CheckSubnets()
}
