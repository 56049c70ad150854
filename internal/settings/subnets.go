package settings

import (
	"flag"

	"github.com/egret-net/egret/internal/world"
)

// Subnets are the ranges that the cluster gives out; agents and controllers are to be told the same.
type Subnets struct{ cluster, service string }

// SubnetFlags registers the flags. Into is to be called when they are parsed.
func SubnetFlags(f *flag.FlagSet) *Subnets {
	s := &Subnets{}
	f.StringVar(&s.cluster, "cluster-subnets", "10.244.0.0/16/24",
		"`ranges` of pod addresses, each with the length of a node's part: 10.244.0.0/16/24,fd00:10:244::/48/64")
	f.StringVar(&s.service, "service-subnets", "10.96.0.0/16", "`ranges` of cluster IPs: 10.96.0.0/16,fd00:10:96::/112")
	return s
}

// Into writes all ranges into c, the fixed ones too, and refuses those that have addresses in common.
func (s *Subnets) Into(c *world.Config) (err error) {
	c.JoinSubnets, c.TransitSubnets, c.SlotSubnets = world.DefaultJoinSubnets(), world.DefaultTransitSubnets(),
		world.DefaultSlotSubnets()
	if c.ClusterSubnets, err = world.ParseClusterSubnets(s.cluster); err != nil {
		return err
	}
	if c.ServiceSubnets, err = world.ParseSubnets(s.service); err != nil {
		return err
	}
	return c.CheckSubnets()
}
