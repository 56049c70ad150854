package world

import (
	"maps"
	"net/netip"
	"slices"
)

// DefaultNetwork is the name of the cluster default network.
const DefaultNetwork = "default"

// Network is one logical network of the cluster: the default one, which follows from the configuration, or a primary
// user-defined one. Addresses of pods are unique in one network only.
type Network struct {
	Name string
	ID   int // 0 is the default network's
	// Subnets are the ranges that node subnets are cut from. They may overlap another network's.
	Subnets []ClusterSubnet
	// Join and Transit are the subnets of those switches, one a family.
	Join, Transit []netip.Prefix
	// Masquerade are the addresses, one a family, that pods' packets have when they leave the network's gateway router
	// on any node; none: the node's own.
	Masquerade []netip.Addr
}

// NodeNetwork is a node's part of a network.
type NodeNetwork struct {
	Subnets []netip.Prefix // one a family
}

// Interface is a pod's interface into a network.
type Interface struct {
	Network string
	MAC     string
	IPs     []netip.Addr
}

// DefaultNetwork is the network that flags describe.
func (c *Config) DefaultNetwork() *Network {
	return &Network{Name: DefaultNetwork, Subnets: c.ClusterSubnets, Join: c.JoinSubnets, Transit: c.TransitSubnets}
}

// Families are the address families of a network, IPv4 first.
func (n *Network) Families() []Family {
	var out []Family
	for _, f := range []Family{V4, V6} {
		if len(n.Cluster(f)) > 0 {
			out = append(out, f)
		}
	}
	return out
}

// Cluster are the ranges of a family that the network's pods have addresses of.
func (n *Network) Cluster(f Family) []netip.Prefix { return clusterOf(n.Subnets, f) }

// JoinAddr is the address of node id on the join switch; id 1 is the cluster router's.
func (n *Network) JoinAddr(id int, f Family) netip.Prefix { return hostOf(n.Join, id, f) }

// TransitAddr is the address of node id on the transit switch.
func (n *Network) TransitAddr(id int, f Family) netip.Prefix { return hostOf(n.Transit, id, f) }

// JoinMAC is the hardware address of node id's gateway router on the join switch; id 1 is the cluster router's.
func (n *Network) JoinMAC(id int) string { return MAC(n.JoinAddr(id, n.Families()[0]).Addr()) }

// TransitMAC is the hardware address of node id's cluster router on the transit switch.
func (n *Network) TransitMAC(id int) string { return MAC(n.TransitAddr(id, n.Families()[0]).Addr()) }

// In is the node's part of a network.
func (n *Node) In(network string) NodeNetwork {
	if network == DefaultNetwork {
		return NodeNetwork{Subnets: n.Subnets}
	}
	return n.Further[network]
}

// Networks lists all networks by name.
func (w *View) Networks() []string {
	w.saw(KindNetworks, "")
	return append([]string{DefaultNetwork}, slices.Sorted(maps.Keys(w.networks))...)
}

// Network is a network, or nil.
func (w *View) Network(name string) *Network {
	w.saw(KindNetwork, name)
	if name == DefaultNetwork {
		return w.Config.DefaultNetwork()
	}
	return w.networks[name]
}

// SetNetwork adds or replaces a network beside the default one.
func (w *World) SetNetwork(n *Network) []Touch {
	_, had := w.networks[n.Name]
	if w.networks[n.Name] = n; had {
		return []Touch{{KindNetwork, n.Name}}
	}
	return []Touch{{KindNetwork, n.Name}, {KindNetworks, ""}}
}

// DelNetwork removes a network.
func (w *World) DelNetwork(name string) []Touch {
	if _, had := w.networks[name]; !had {
		return nil
	}
	delete(w.networks, name)
	return []Touch{{KindNetwork, name}, {KindNetworks, ""}}
}

// Part is this node's part of a network, once enough is known to compile it: see Zone.
type Part struct {
	*Network
	Node    *Node
	Host    *Host
	Subnets []netip.Prefix
}

// Part is nil until the network with its subnets, this node's subnets of it, and the host are known.
func (w *View) Part(network string) *Part {
	net := w.Network(network)
	n, h, ok := w.Zone()
	if !ok || net == nil || len(net.Families()) == 0 {
		return nil
	}
	p := &Part{net, n, h, n.In(network).Subnets}
	if len(p.Subnets) == 0 {
		return nil
	}
	return p
}
