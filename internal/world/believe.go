package world

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/ref"
)

// Not all that Nodes say about themselves is believed: the credentials of one node must not draw packets of a second
// one away from a third. Ids, node subnets, addresses and hardware addresses must be in range, and each is one node's.
// Of several that claim the same it is the one's that the controller has recorded with it (Record); of those of one
// rank, the former keeps it: the one that this world knew first and that has claimed it ever since. When a program
// starts, that is the older Node, for lists are taken in in order of creation (package kube). Only the controller
// writes ids and node subnets: they need no record. A node believes itself before all others.

// FirstID is the lowest id of a node: 1 is the cluster router's address in the join subnets.
const FirstID = 2

// lastID is the highest key that a port of a logical switch can have: a node's id is the key of its port on
// transit_switch.
const lastID = 1<<15 - 1

// MaxID is the highest id that has an address in the join and transit subnets of all families.
func (c *Config) MaxID() int {
	highest := lastID
	for _, p := range slices.Concat(c.JoinSubnets, c.TransitSubnets) {
		highest = min(highest, MaxIDIn(p))
	}
	return highest
}

// MaxIDIn is the highest id that has an address in a subnet.
func MaxIDIn(p netip.Prefix) int {
	host := min(p.Addr().BitLen()-p.Bits(), bits.Len(lastID)+1)
	return min(lastID, 1<<host-2) // the last address is the broadcast address
}

// NodeSubnet says whether a prefix is one that a node can have of the default network.
func (c *Config) NodeSubnet(p netip.Prefix) bool { return c.DefaultNetwork().NodeSubnet(p) }

// Reserved says which of the cluster's own subnets an address is in, and what for: "pod", "service", "join", "transit"
// or "slot"; "" if it is in none.
func (c *Config) Reserved(a netip.Addr) (subnet netip.Prefix, what string) {
	for _, r := range c.OwnSubnets() {
		if r.CIDR.Contains(a) {
			return r.CIDR, r.What
		}
	}
	return netip.Prefix{}, ""
}

func (c *Config) isReserved(a netip.Addr) bool {
	_, what := c.Reserved(a)
	return what != ""
}

// OwnSubnet is a range that the cluster gives out itself.
type OwnSubnet struct {
	What string
	CIDR netip.Prefix
}

// OwnSubnets are all ranges that the cluster gives addresses of, or uses between its routers.
func (c *Config) OwnSubnets() []OwnSubnet {
	var out []OwnSubnet
	for _, s := range c.ClusterSubnets {
		out = append(out, OwnSubnet{"pod", s.CIDR})
	}
	for _, r := range []struct {
		what string
		list []netip.Prefix
	}{{"service", c.ServiceSubnets}, {"join", c.JoinSubnets}, {"transit", c.TransitSubnets}, {"slot", c.SlotSubnets},
		{"further slot", FurtherSlotSubnets()}} {
		for _, p := range r.list {
			out = append(out, OwnSubnet{r.what, p.Masked()})
		}
	}
	return out
}

// asset is an id, or else a hardware address, or else a node subnet or an address. A node subnet of a network beside
// the default one has its name.
type asset struct {
	id      int
	mac     HardwareAddr
	network string
	prefix  netip.Prefix
}

// subnetAsset is a node subnet of a network.
func subnetAsset(network string, p netip.Prefix) asset {
	if network == ref.DefaultNetwork {
		return asset{prefix: p}
	}
	return asset{network: network, prefix: p}
}

// claimableAssets are what a node claims and may have, each once.
func (w *World) claimableAssets(n *Node) []asset {
	if n == nil {
		return nil
	}
	var out []asset
	add := func(a asset) {
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	if n.ID >= FirstID && n.ID <= w.Config.MaxID() {
		add(asset{id: n.ID})
	}
	if n.UplinkMAC.IsValid() {
		add(asset{mac: n.UplinkMAC})
	}
	for _, p := range n.Subnets {
		if w.Config.NodeSubnet(p) {
			add(asset{prefix: p})
		}
	}
	for name, part := range n.Further { // also of a network that is not known yet: the former keeps it
		for _, p := range part.Subnets {
			add(asset{network: name, prefix: p})
		}
	}
	for _, a := range n.primaryAddresses() {
		if _, reserved := w.Config.Reserved(a); reserved == "" {
			add(asset{prefix: Single(a)})
		}
	}
	return out
}

// assetOwner is the node that has an asset: of the lowest rank, and of these the former; "" if nobody claims it.
func (w *World) assetOwner(a asset) string {
	first := ""
	for _, name := range w.assetsOf[a] {
		if first == "" || w.rankClaim(name, a) < w.rankClaim(first, a) {
			first = name
		}
	}
	return first
}

// noteClaims notes what a node claims now, nil for nothing more, and returns the other nodes that have gained or lost
// something by it.
func (w *World) noteClaims(name string, n *Node) (others []string) {
	was, is := w.claimableAssets(w.said[name]), w.claimableAssets(n)
	concerned := slices.Concat(is, slices.DeleteFunc(slices.Clone(was),
		func(a asset) bool { return slices.Contains(is, a) }))
	before := w.assetOwners(concerned)
	for _, a := range concerned {
		w.claimOne(name, a, slices.Contains(is, a))
	}
	if w.said[name] = n; n == nil {
		delete(w.said, name)
	}
	for i, now := range w.assetOwners(concerned) {
		for _, o := range []string{before[i], now} {
			if o != "" && o != name && before[i] != now && !slices.Contains(others, o) {
				others = append(others, o)
			}
		}
	}
	return others
}

func (w *World) assetOwners(all []asset) []string {
	out := make([]string, len(all))
	for i, a := range all {
		out[i] = w.assetOwner(a)
	}
	return out
}

// claimOne notes whether a node claims an asset. One that did keeps its place among the claimants.
func (w *World) claimOne(name string, a asset, claims bool) {
	had := slices.Contains(w.assetsOf[a], name)
	switch {
	case claims && !had:
		w.assetsOf[a] = append(slices.Clip(w.assetsOf[a]), name)
	case !claims && had:
		if w.assetsOf[a] = withoutString(w.assetsOf[a], name); len(w.assetsOf[a]) == 0 {
			delete(w.assetsOf, a)
		}
	}
}

// NodeProblem is what a node says of itself that cannot be read, or is not believed.
type NodeProblem struct {
	// About is what of the node it is: "id", "subnet 10.244.1.0/24", "annotation k8s.ovn.org/host-cidrs".
	About string
	Owner string // the node whose it is, if it is another's
	Text  string // says so in words, and what to do
}

// String is the problem in words.
func (p NodeProblem) String() string { return p.Text }

// withoutDisputed is a node without what it cannot have and what others have; why not is among its problems, but for
// addresses beside the primary network's: hosts have the same address on links of their own (docker0), so that a list
// of them takes none from another node, nor from one to come.
func (w *World) withoutDisputed(n *Node) *Node {
	out := *n
	out.Problems = slices.Clip(n.Problems)
	doubt := func(p NodeProblem) { out.Problems = append(out.Problems, p) }
	switch owner := w.assetOwner(asset{id: n.ID}); {
	case n.ID == 0 || owner == n.Name:
	case owner != "":
		out.ID = 0
		doubt(NodeProblem{"id", owner, fmt.Sprintf("id %d is also node %s's: the node gets another", n.ID, owner)})
	default:
		out.ID = 0
		doubt(NodeProblem{"id", "", fmt.Sprintf("id %d is not between %d and %d: the node gets another", n.ID, FirstID,
			w.Config.MaxID())})
	}
	out.Subnets = w.ownedSubnets(w.networks[ref.DefaultNetwork], n, doubt)
	out.Further = w.ownedParts(n, doubt)
	out.Primary = slices.DeleteFunc(slices.Clone(n.Primary), func(p netip.Prefix) bool {
		why := w.notPrimary(n, p.Addr())
		if why != "" {
			about := "address " + p.String()
			doubt(NodeProblem{about, w.assetOwner(asset{prefix: Single(p.Addr())}), about + " " + why})
		}
		return why != ""
	})
	if owner := w.assetOwner(asset{mac: n.UplinkMAC}); n.UplinkMAC.IsValid() && owner != n.Name {
		out.UplinkMAC = HardwareAddr{}
		doubt(NodeProblem{"hardware address", owner, fmt.Sprintf("hardware address %s is also node %s's: %s, or give "+
			"the node's link one of its own", n.UplinkMAC, owner, deleteIfGone(owner))})
	}
	out.HostAddrs = slices.DeleteFunc(slices.Clone(n.HostAddrs), w.Config.isReserved)
	if out.sameNode(n) {
		return n
	}
	return &out
}

// notPrimary says why an address on its primary network is not a node's, and what to do; "" if it is. A node cannot
// take an egress IP that has a node by saying that it has it, unless it is recorded with it; one of which nothing is
// recorded is new, and joins, whatever comes of that address.
func (w *World) notPrimary(n *Node, a netip.Addr) string {
	own := asset{prefix: Single(a)}
	const another = "give the node's primary network an address of its own"
	switch owner := w.assetOwner(own); {
	case owner == "":
		return "is in a subnet of the cluster's own: " + another
	case owner != n.Name:
		return fmt.Sprintf("is also node %s's: %s, or %s", owner, deleteIfGone(owner), another)
	case len(w.placed[a]) > 0 && len(n.Record.Addrs) > 0 && w.rankClaim(n.Name, own) > 1:
		return "is an address of an EgressIP: take it out of the EgressIP, or " + another
	}
	return ""
}

// deleteIfGone is the remedy for a machine that was installed again under another name.
func deleteIfGone(node string) string { return "delete Node " + node + " if it is gone" }

// ownedParts are a node's parts of networks beside the default one, as far as the networks are known and their subnets
// are the node's.
func (w *World) ownedParts(n *Node, doubt func(NodeProblem)) map[string]NodeNetwork {
	var out map[string]NodeNetwork
	for _, name := range slices.Sorted(maps.Keys(n.Further)) {
		net := w.Network(name)
		if net == nil {
			continue
		}
		if subnets := w.ownedSubnets(net, n, doubt); len(subnets) > 0 {
			if out == nil {
				out = map[string]NodeNetwork{}
			}
			out[name] = NodeNetwork{Subnets: subnets}
		}
	}
	return out
}

// ownedSubnets are a node's subnets of a network, without what is not in its ranges or another node's.
func (w *World) ownedSubnets(net *Network, n *Node, doubt func(NodeProblem)) []netip.Prefix {
	var has [2]bool
	return slices.DeleteFunc(slices.Clone(n.In(net.Name).Subnets), func(p netip.Prefix) bool {
		owner, f := w.assetOwner(subnetAsset(net.Name, p)), FamilyOf(p.Addr())
		why := ""
		switch {
		case !net.NodeSubnet(p):
			owner, why = "", notASubnet(p)
		case owner != n.Name:
			why = "is also node " + owner + "'s"
		case has[f]:
			why = "is the node's second one of its family"
		default:
			has[f] = true
			return false
		}
		about := "subnet " + p.String() + ofNetwork(net)
		doubt(NodeProblem{about, owner, about + " " + why + ": the node does not use it"})
		return true
	})
}

// ofNetwork names a network beside the default one.
func ofNetwork(n *Network) string {
	if n.Name == ref.DefaultNetwork {
		return ""
	}
	return " of network " + n.Name
}

func notASubnet(p netip.Prefix) string {
	if p != p.Masked() {
		return "is an address and not a subnet"
	}
	return "is no node's part of the cluster subnets"
}

// Said returns a node as SetNode got it, or nil, for code that corrects claims that are not believed. It does not
// record.
func (w *World) Said(name string) *Node { return w.said[name] }

// AddressIn returns the address in a network of the pod of that key which has address at in the default network, of the
// same family. It returns none where the pod does not have at: that was another pod with its name.
func (w *View) AddressIn(network, key string, at netip.Addr) (ip netip.Addr, is bool) {
	p := w.Pod(key)
	if p == nil || !slices.Contains(p.IPs, at) {
		return netip.Addr{}, false
	}
	ips := FamilyOf(at).OfAddrs(w.PodIPs(p, network))
	if len(ips) == 0 {
		return netip.Addr{}, false
	}
	return ips[0], true
}

// PodIPs are the addresses of a pod in a network that are in its node's subnets there, for a pod's status and
// annotations are its node's words, and that are no other pod's (Taken). A pod in the host's network has the host's
// addresses, which no egress IP is for.
func (w *View) PodIPs(p *Pod, network string) []netip.Addr {
	w.noteRead(KindSubnets, p.Node)
	w.noteRead(KindPod, p.Key()) // changes when an address becomes, or ceases to be, another's
	n := w.nodes[p.Node]
	if n == nil || p.HostNetwork {
		return nil
	}
	subnets := n.In(network).Subnets
	var out []netip.Addr
	for _, ip := range p.SaidIn(network) {
		inSubnets := slices.ContainsFunc(subnets, func(s netip.Prefix) bool { return s.Contains(ip) })
		if inSubnets && w.ownerOf(podAddress{p.Node, network, ip}, p) == "" {
			out = append(out, ip)
		}
	}
	return out
}

// IsOutsideSubnets reports whether an address lies in none of this node's subnets of a network. As long as the node has
// no subnet of the family there, no address does.
func (w *View) IsOutsideSubnets(network string, ip netip.Addr) bool {
	w.noteRead(KindSubnets, w.Self)
	n := w.nodes[w.Self]
	if n == nil {
		return false
	}
	subnets := n.In(network).Subnets
	_, known := FamilyOf(ip).Of(subnets)
	return known && !slices.ContainsFunc(subnets, func(s netip.Prefix) bool { return s.Contains(ip) })
}

// Placed says whether an address is that of an EgressIP by its status, whether it has a node now or not.
func (w *View) Placed(a netip.Addr) bool {
	return len(w.PlacedBy(a)) > 0
}

// PlacedBy are the EgressIPs that have an address by their statuses, by name.
func (w *View) PlacedBy(a netip.Addr) []string {
	w.noteRead(KindPlaced, a.String())
	return w.placed[a]
}

// noteStatusAddresses notes the addresses of an EgressIP's status, old and new. Nodes that claim one of these addresses
// are judged again.
func (w *World) noteStatusAddresses(old, new *EgressIP) {
	was, is := old.keptAddresses(), new.keptAddresses()
	for _, ip := range slices.Compact(slices.SortedFunc(slices.Values(slices.Concat(was, is)), netip.Addr.Compare)) {
		if slices.Contains(was, ip) == slices.Contains(is, ip) {
			continue
		}
		name := cmp.Or(old, new).Name
		if NoteInIndex(w.placed, ip, name, slices.Contains(is, ip)); len(w.placed[ip]) < 2 {
			for _, name := range w.assetsOf[asset{prefix: Single(ip)}] {
				w.putNode(w.withoutDisputed(w.said[name]))
			}
		}
		w.noteChanged(KindPlaced, ip.String())
	}
}

// keptAddresses are the addresses that an EgressIP keeps by its status.
func (e *EgressIP) keptAddresses() (out []netip.Addr) {
	if e == nil {
		return nil
	}
	out = slices.Clone(e.Granted)
	for _, i := range e.Items {
		out = append(out, i.IP)
	}
	return out
}
