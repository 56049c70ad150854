package world

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/ref"
)

// Network is one logical network of the cluster: the default one, which follows from the configuration, or a primary
// user-defined one. Addresses of pods are unique in one network only.
type Network struct {
	Name string
	// ID is 0 of the default network; names and numbers of all that belongs to a network follow from it (plan.Names).
	ID int
	// Subnets are the ranges that node subnets are cut from. They may overlap another network's.
	Subnets []ClusterSubnet
	// Join and Transit are the subnets of those switches, one a family.
	Join, Transit []netip.Prefix
	// MTU of pods' interfaces, in octets; 0: that of the default network.
	MTU int
	// Namespaces are those whose pods have it as their primary network, sorted. The default network names none: it is
	// that of all that do not ask for one of their own.
	Namespaces []string
}

// MaxNetworkID is the highest number of a network: OVN leaves so many keys free for transit switches (plan.TransitKey).
const MaxNetworkID = 4095

// NodeNetwork is a node's part of a network.
type NodeNetwork struct {
	Subnets []netip.Prefix // one a family
}

func (p NodeNetwork) sameSubnets(o NodeNetwork) bool { return slices.Equal(p.Subnets, o.Subnets) }

// SameParts says whether a node's parts of networks are the same.
func SameParts(a, b map[string]NodeNetwork) bool {
	return maps.EqualFunc(a, b, NodeNetwork.sameSubnets)
}

// Interface is a pod's interface into a network.
type Interface struct {
	Network string
	MAC     string
	IPs     []netip.Addr
}

func (i Interface) sameInterface(o Interface) bool {
	return i.Network == o.Network && i.MAC == o.MAC && slices.Equal(i.IPs, o.IPs)
}

// addressesInNetwork are the addresses of those of some interfaces that are in a network.
func addressesInNetwork(network string, interfaces []Interface) []netip.Addr {
	var out []netip.Addr
	for _, i := range interfaces {
		if i.Network == network {
			out = append(out, i.IPs...)
		}
	}
	return out
}

// Key is the name.
func (n *Network) Key() string { return n.Name }

func (n *Network) sameNetwork(o *Network) bool {
	return n.ID == o.ID && slices.Equal(n.Subnets, o.Subnets) && slices.Equal(n.Join, o.Join) &&
		slices.Equal(n.Transit, o.Transit) && n.MTU == o.MTU && slices.Equal(n.Namespaces, o.Namespaces)
}

// DefaultNetwork is the network that flags describe.
func (c *Config) DefaultNetwork() *Network {
	return &Network{Name: ref.DefaultNetwork, Subnets: c.ClusterSubnets, Join: c.JoinSubnets, Transit: c.TransitSubnets}
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

// NodeSubnet says whether a prefix is one that a node can have: a node's part of one of the network's subnets.
func (n *Network) NodeSubnet(p netip.Prefix) bool {
	return p == p.Masked() && slices.ContainsFunc(n.Subnets, func(s ClusterSubnet) bool {
		return s.CIDR.Contains(p.Addr()) && p.Bits() == s.NodeLen
	})
}

// JoinAddr is the address of node id on the join switch; id 1 is the cluster router's.
func (n *Network) JoinAddr(id int, f Family) netip.Prefix { return hostOf(n.Join, id, f) }

// TransitAddr is the address of node id on the transit switch.
func (n *Network) TransitAddr(id int, f Family) netip.Prefix { return hostOf(n.Transit, id, f) }

// JoinMAC is the hardware address of node id's gateway router on the join switch; id 1 is the cluster router's.
func (n *Network) JoinMAC(id int) string { return MAC(n.JoinAddr(id, n.Families()[0]).Addr()) }

// TransitMAC is the hardware address of node id's cluster router on the transit switch.
func (n *Network) TransitMAC(id int) string { return MAC(n.TransitAddr(id, n.Families()[0]).Addr()) }

// Masquerade is the source that pods' packets have where they leave their network's gateway router for the default
// network's cluster router: it tells the networks apart there, whose pods may have the same addresses. It means
// something on one node only. The default network has none: its gateway routers give the node's address. The IPv4
// addresses are OVN-Kubernetes'.
func (n *Network) Masquerade(f Family) (a netip.Addr, ok bool) { return n.linkAddress(f, 0), n.ID > 0 }

// MasqueradeRouter is the address of the default network's cluster router on the link to this network's gateway router.
func (n *Network) MasqueradeRouter(f Family) netip.Addr { return n.linkAddress(f, 1) }

func (n *Network) linkAddress(f Family, end int) netip.Addr {
	const first, each = 9, 2 // network 1 has 169.254.0.11 and .12
	return Nth(Masquerades(f), first+each*n.ID+end)
}

// Masquerades is the range of all networks' masquerade addresses. That of IPv6 lies beside OVN-Kubernetes', where
// DefaultMasqueradeSubnets is: rules about this range are not about those addresses.
func Masquerades(f Family) netip.Prefix {
	return [...]netip.Prefix{netip.MustParsePrefix("169.254.0.0/17"), netip.MustParsePrefix("fd69::1:0/112")}[f]
}

// In is the node's part of a network.
func (n *Node) In(network string) NodeNetwork {
	if network == ref.DefaultNetwork {
		return NodeNetwork{Subnets: n.Subnets}
	}
	return n.Further[network]
}

// Networks lists all networks, the default one first, then by name.
func (w *View) Networks() []string {
	w.noteRead(KindNetworks, "")
	names := slices.Sorted(maps.Keys(w.networks))
	i := slices.Index(names, ref.DefaultNetwork)
	return slices.Insert(slices.Delete(names, i, i+1), 0, ref.DefaultNetwork)
}

// Network is a network, or nil. A network without a valid number, or with one that was another's first, does not count:
// its rows would be the other's.
func (w *View) Network(name string) *Network {
	w.noteRead(KindNetwork, name)
	n := w.networks[name]
	if n == nil || n.ID < 0 || n.ID > MaxNetworkID || w.numbered[n.ID][0] != name {
		return nil
	}
	return n
}

// SetNetwork adds or replaces a network beside the default one, which stays as flags say.
func (w *World) SetNetwork(n *Network) {
	if n.Name == ref.DefaultNetwork {
		return
	}
	Set(w, KindNetwork, n)
}

// DelNetwork removes a network beside the default one.
func (w *World) DelNetwork(name string) {
	if name == ref.DefaultNetwork {
		return
	}
	Del[Network](w, KindNetwork, name)
}

// PrimaryNetwork returns the network by which pods of a namespace talk to the outside, and which EgressIPs are about.
// A namespace that asks for its own network and has none yet has "": in the default network, pods of other namespaces
// would reach its pods. Of several networks that have the namespace, the one with the lowest number counts. A pod may
// have interfaces into further networks.
func (w *View) PrimaryNetwork(namespace string) string { return w.primary.valueOf(w, namespace) }

// derivesPrimary is by namespace.
func derivesPrimary() Derived[string, string] {
	return Derived[string, string]{
		of: func(v *View, namespace string) string {
			if ns := v.Namespace(namespace); ns == nil || !ns.OwnNetwork {
				return ref.DefaultNetwork
			}
			first := &Network{}
			for _, name := range v.ownNetworks(namespace) {
				if n := v.Network(name); n != nil && (first.Name == "" || n.ID < first.ID) {
					first = n
				}
			}
			return first.Name
		},
		exists: func(w *View, namespace string) bool { return w.namespaces[namespace] != nil },
	}
}

// ownNetworks are the networks that have a namespace, in no order.
func (w *View) ownNetworks(namespace string) []string {
	w.noteRead(KindNetworksOf, namespace)
	return w.networkNames[namespace]
}

// noteNamespaces follows which namespaces a network has.
func (w *World) noteNamespaces(old, now *Network) {
	if old != nil && now != nil && slices.Equal(old.Namespaces, now.Namespaces) {
		return
	}
	change := func(n *Network, with bool) {
		if n == nil {
			return
		}
		for _, ns := range n.Namespaces {
			list := withoutString(w.networkNames[ns], n.Name)
			if with {
				list = append(slices.Clip(list), n.Name)
			}
			if w.networkNames[ns] = list; len(list) == 0 {
				delete(w.networkNames, ns)
			}
			w.noteChanged(KindNetworksOf, ns)
		}
	}
	change(old, false)
	change(now, true)
}

// networkChanged follows whose each number is, and with that what nodes are believed of their parts.
func (w *World) networkChanged(old, now *Network) {
	w.noteNamespaces(old, now)
	if old != nil && (now == nil || now.ID != old.ID) {
		w.numbered[old.ID] = withoutString(w.numbered[old.ID], old.Name)
		w.noteNumbered(old.ID)
	}
	if now != nil && !slices.Contains(w.numbered[now.ID], now.Name) {
		w.numbered[now.ID] = append(slices.Clip(w.numbered[now.ID]), now.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(w.said)) {
		if n := w.said[name]; len(n.Further) > 0 {
			w.putNode(w.withoutDisputed(n))
		}
	}
}

// noteNumbered invalidates the networks that ask for a number.
func (w *World) noteNumbered(id int) {
	for _, name := range w.numbered[id] {
		w.noteChanged(KindNetwork, name)
	}
	if len(w.numbered[id]) == 0 {
		delete(w.numbered, id)
	}
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

// HasNetworks says whether this node has a part of a network beside the default one.
func (w *View) HasNetworks() bool {
	return slices.ContainsFunc(w.Networks()[1:], func(name string) bool { return w.Part(name) != nil })
}
