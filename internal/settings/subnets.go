package settings

import (
	"flag"
	"fmt"
	"net/netip"

	"github.com/egret-net/egret/internal/world"
)

// Subnets are the ranges that the cluster gives out; agents and controllers must have the same.
type Subnets struct {
	cluster, service                string
	join, transit, slot, masquerade [2]string // by world.Family
}

// SubnetFlags registers the flags. Call Into when they are parsed.
func SubnetFlags(f *flag.FlagSet) *Subnets {
	s := &Subnets{}
	f.StringVar(&s.cluster, "cluster-subnets", "10.244.0.0/16/24",
		"`ranges` of pod addresses, each with the length of a node's part: 10.244.0.0/16/24,fd00:10:244::/48/64")
	f.StringVar(&s.service, "service-subnets", "10.96.0.0/16", "`ranges` of cluster IPs: 10.96.0.0/16,fd00:10:96::/112")
	for i, v := range []string{"v4", "v6"} {
		f.StringVar(&s.join[i], "gateway-"+v+"-join-subnet", world.DefaultJoinSubnets()[i].String(),
			"`range` in which gateway routers meet the cluster router, with room for "+manyText)
		f.StringVar(&s.transit[i], "cluster-manager-"+v+"-transit-subnet", world.DefaultTransitSubnets()[i].String(),
			"`range` in which nodes' cluster routers meet, with room for "+manyText)
		f.StringVar(&s.slot[i], "egressip-"+v+"-slot-subnet", world.DefaultSlotSubnets()[i].String(),
			"`range` of routers' second addresses, by which EgressIPs with several addresses are steered; of this length")
		f.StringVar(&s.masquerade[i], "gateway-"+v+"-masquerade-subnet", world.DefaultMasqueradeSubnets()[i].String(),
			"`range` of addresses that stand for others inside a node, with room for "+fewText)
	}
	return s
}

// How many bits of an address a node's id has in the ranges where routers meet, and a number in the masquerade subnet.
const (
	many, manyText = 16, "65,536 addresses"
	few, fewText   = 3, "8 addresses"
)

// parseFamilyPair reads a range a family; flag has %s instead of v4 and v6.
func parseFamilyPair(flag string, of [2]string, room int, roomText string, like []netip.Prefix) ([]netip.Prefix,
	error) {
	var out []netip.Prefix
	for i, text := range of {
		name := "--" + fmt.Sprintf(flag, []string{"v4", "v6"}[i])
		p, err := netip.ParsePrefix(text)
		switch {
		case err != nil || p != p.Masked():
			return nil, fmt.Errorf("%s %q is no range: write one such as %s", name, text, like[i])
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

// Into writes all ranges into c, and refuses those that have addresses in common.
func (s *Subnets) Into(c *world.Config) (err error) {
	if c.JoinSubnets, err = parseFamilyPair("gateway-%s-join-subnet", s.join, many, manyText,
		world.DefaultJoinSubnets()); err != nil {
		return err
	}
	if c.TransitSubnets, err = parseFamilyPair("cluster-manager-%s-transit-subnet", s.transit, many, manyText,
		world.DefaultTransitSubnets()); err != nil {
		return err
	}
	if c.MasqueradeSubnets, err = parseFamilyPair("gateway-%s-masquerade-subnet", s.masquerade, few, fewText,
		world.DefaultMasqueradeSubnets()); err != nil {
		return err
	}
	if c.SlotSubnets, err = parseSlotSubnets(s.slot); err != nil {
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

func parseSlotSubnets(of [2]string) ([]netip.Prefix, error) {
	const flag = "egressip-%s-slot-subnet"
	out, err := parseFamilyPair(flag, of, many, manyText, world.DefaultSlotSubnets())
	for i, p := range out {
		if err := world.CheckSlotSubnet(p); err != nil {
			return nil, fmt.Errorf("--"+flag+" %w", []string{"v4", "v6"}[i], err)
		}
	}
	return out, err
}
