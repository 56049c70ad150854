package world

import (
	"net/netip"
	"time"
)

// GatewayMode says which way a pod's packets to the outside take when no egress IP serves it.
type GatewayMode string

const (
	// SharedGateway sends them through the node's gateway router, which shares the uplink with the host.
	SharedGateway GatewayMode = "shared"
	// LocalGateway sends them through the management port and the host's own routing.
	LocalGateway GatewayMode = "local"
)

// ClusterSubnet is a range that node subnets are cut from, HostBits a node: 10.244.0.0/16 with NodeLen 24.
type ClusterSubnet struct {
	CIDR    netip.Prefix
	NodeLen int
}

// Config is what flags say: it never changes while a process runs.
type Config struct {
	GatewayMode    GatewayMode
	ClusterSubnets []ClusterSubnet
	ServiceSubnets []netip.Prefix
	JoinSubnets    []netip.Prefix // gateway routers meet the cluster router here: node id is the host part
	TransitSubnets []netip.Prefix // zones meet here: node id is the host part
	// MasqueradeSubnets have the addresses that stand for others inside a node: LocalOnly and Hairpin.
	MasqueradeSubnets []netip.Prefix
	UplinkInterface   string         // "eth0"
	Bridge            string         // "breth0"
	SlotSubnets       []netip.Prefix // of the ECMP slots' next hops, see DefaultSlotSubnets
	UserspaceOVS      bool           // OVS' netdev datapath: the kernel sees the uplink's packets too
	MTU               int            // of pods' links, in bytes; 0: as the uplink's tunnels carry, see PodMTU
	NodeHealthPort    uint16         // where load balancers ask whether a node takes connections; 0: nowhere
	AgentPort         uint16         // at the management port, where other agents ask; 0: nowhere
	EncapPort         int            // UDP port of tunnels, the same on all nodes
	// ReachabilityTimeout is the time of silence after which an egress node is dead; 0: egress nodes are assumed to be
	// reachable.
	ReachabilityTimeout time.Duration
}

// DefaultJoinSubnets and DefaultTransitSubnets are OVN-Kubernetes' defaults.
func DefaultJoinSubnets() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("100.64.0.0/16"), netip.MustParsePrefix("fd98::/64")}
}

// DefaultTransitSubnets see DefaultJoinSubnets.
func DefaultTransitSubnets() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("100.88.0.0/16"), netip.MustParsePrefix("fd97::/64")}
}

// DefaultMasqueradeSubnets see DefaultJoinSubnets.
func DefaultMasqueradeSubnets() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("169.254.169.0/29"), netip.MustParsePrefix("fd69::/125")}
}

// GenevePort is Geneve's own UDP port (RFC 8926), and OVS' default.
const GenevePort = 6081

// DefaultReachabilityTimeout is OVN-Kubernetes' default.
const DefaultReachabilityTimeout = time.Second

// Families are the address families of the cluster subnets, IPv4 first.
func (c *Config) Families() []Family {
	var fs []Family
	for _, f := range []Family{V4, V6} {
		if len(c.Cluster(f)) > 0 {
			fs = append(fs, f)
		}
	}
	return fs
}

// Cluster are the cluster subnets of a family.
func (c *Config) Cluster(f Family) []netip.Prefix {
	return clusterOf(c.ClusterSubnets, f)
}

func clusterOf(subnets []ClusterSubnet, f Family) []netip.Prefix {
	var ps []netip.Prefix
	for _, s := range subnets {
		if FamilyOf(s.CIDR.Addr()) == f {
			ps = append(ps, s.CIDR)
		}
	}
	return ps
}

// Join is the address of node id in the join subnet of a family; id 1 is the cluster router's.
func (c *Config) Join(id int, f Family) netip.Prefix { return hostOf(c.JoinSubnets, id, f) }

// Transit is the address of node id in the transit subnet of a family.
func (c *Config) Transit(id int, f Family) netip.Prefix { return hostOf(c.TransitSubnets, id, f) }

// LocalOnly is the address at which a node's switch balances to its own pods only, by node port: the way that
// connections from outside take, with their source, in local gateway mode (seed external-traffic-policy.md).
func (c *Config) LocalOnly(f Family) netip.Addr { return hostOf(c.MasqueradeSubnets, 3, f).Addr() }

// Hairpin is the source that a pod sees which reaches itself through a Service.
func (c *Config) Hairpin(f Family) netip.Addr { return hostOf(c.MasqueradeSubnets, 5, f).Addr() }

func hostOf(subnets []netip.Prefix, host int, f Family) netip.Prefix {
	for _, s := range subnets {
		if FamilyOf(s.Addr()) == f {
			return netip.PrefixFrom(Nth(s, host), s.Bits())
		}
	}
	return netip.Prefix{}
}
