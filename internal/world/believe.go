package world

import (
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
)

// What Nodes say of themselves is not all believed: the credentials of one node must not make others send it what is a third one's. Ids, node
// subnets, addresses and hardware addresses must be in range, and each is one node's. Of several that claim the same it is the one's that the controller has
// recorded with it (Record); of those of one rank, the former keeps it: the one that this world knew first and that has claimed it ever since. When a program
// starts, that is the older Node, for lists are taken in in order of creation (package kube). Only the controller writes ids and node subnets: they need no record.
// A node believes itself before all others.

// FirstID is the lowest id of a node: 1 is the cluster router's address in the join subnets.
const FirstID = 2

// lastID is the highest key that a port of a logical switch can have: a node's id is the key of its port on transit_switch.
const lastID = 1<<15 - 1

// MaxID is the highest id that has an address in the join and transit subnets of all families.
func (c *Config) MaxID() int {
	highest := lastID
	for _, subnets := range [][]netip.Prefix{c.JoinSubnets, c.TransitSubnets} {
		for _, p := range subnets {
			if host := p.Addr().BitLen() - p.Bits(); host < bits.Len(lastID) {
				highest = min(highest, 1<<host-2) // the last is the broadcast address
			}
		}
	}
	return highest
}

// NodeSubnet says whether a prefix is one that a node can have: a node's part of a cluster subnet.
func (c *Config) NodeSubnet(p netip.Prefix) bool {
	return p == p.Masked() && slices.ContainsFunc(c.ClusterSubnets, func(s ClusterSubnet) bool {
		return s.CIDR.Contains(p.Addr()) && p.Bits() == s.NodeLen
	})
}

// Reserved says which of the cluster's own subnets an address is in, and what for: "pod", "service", "join", "transit" or "slot"; "" if it is in none.
func (c *Config) Reserved(a netip.Addr) (subnet netip.Prefix, what string) {
	for _, r := range c.ownSubnets() {
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

// ownSubnet is a range that the cluster gives out itself.
type ownSubnet struct {
	What string
	CIDR netip.Prefix
}

func (c *Config) ownSubnets() []ownSubnet {
	var out []ownSubnet
	for _, s := range c.ClusterSubnets {
		out = append(out, ownSubnet{"pod", s.CIDR})
	}
	for _, r := range []struct {
		what string
		list []netip.Prefix
	}{{"service", c.ServiceSubnets}, {"join", c.JoinSubnets}, {"transit", c.TransitSubnets}, {"slot", c.SlotSubnets}} {
		for _, p := range r.list {
			out = append(out, ownSubnet{r.what, p.Masked()})
		}
	}
	return out
}

// asset is an id, or else a hardware address, or else a node subnet or an address.
type asset struct {
	id     int
	mac    HardwareAddr
	prefix netip.Prefix
}

// assets are what a node claims and may have, each once.
func (w *World) assets(n *Node) []asset {
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
	for _, a := range n.addresses() {
		if _, reserved := w.Config.Reserved(a); reserved == "" {
			add(asset{prefix: Single(a)})
		}
	}
	return out
}

// owner is the node that has an asset: of the lowest rank, and of these the former; "" if nobody claims it.
func (w *World) owner(a asset) string {
	first := ""
	for _, name := range w.assetsOf[a] {
		if first == "" || w.rank(name, a) < w.rank(first, a) {
			first = name
		}
	}
	return first
}

// claim notes what a node claims now, nil for nothing more, and returns the other nodes that have gained or lost something by it.
func (w *World) claim(name string, n *Node) (others []string) {
	was, is := w.assets(w.said[name]), w.assets(n)
	concerned := slices.Concat(is, slices.DeleteFunc(slices.Clone(was), func(a asset) bool { return slices.Contains(is, a) }))
	before := w.owners(concerned)
	for _, a := range concerned {
		w.claimOne(name, a, slices.Contains(is, a))
	}
	if w.said[name] = n; n == nil {
		delete(w.said, name)
	}
	for i, now := range w.owners(concerned) {
		for _, o := range []string{before[i], now} {
			if o != "" && o != name && before[i] != now && !slices.Contains(others, o) {
				others = append(others, o)
			}
		}
	}
	return others
}

func (w *World) owners(all []asset) []string {
	out := make([]string, len(all))
	for i, a := range all {
		out[i] = w.owner(a)
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
		if w.assetsOf[a] = without(w.assetsOf[a], name); len(w.assetsOf[a]) == 0 {
			delete(w.assetsOf, a)
		}
	}
}

// believed is a node without what it cannot have and what others have; why not is among its problems, but for addresses beside the primary
// network's: hosts have the same address on links of their own (docker0), so that a list of them takes none from another node, nor from one to come.
func (w *World) believed(n *Node) *Node {
	out := *n
	out.Problems = slices.Clip(n.Problems)
	doubt := func(format string, args ...any) { out.Problems = append(out.Problems, fmt.Sprintf(format, args...)) }
	switch owner := w.owner(asset{id: n.ID}); {
	case n.ID == 0 || owner == n.Name:
	case owner != "":
		out.ID = 0
		doubt("id %d is also node %s's: the node gets another", n.ID, owner)
	default:
		out.ID = 0
		doubt("id %d is not between %d and %d: the node gets another", n.ID, FirstID, w.Config.MaxID())
	}
	out.Subnets = w.ownedSubnets(n, doubt)
	out.Primary = slices.DeleteFunc(slices.Clone(n.Primary), func(p netip.Prefix) bool {
		why := w.notPrimary(n, p.Addr())
		if why != "" {
			doubt("address %s %s", p, why)
		}
		return why != ""
	})
	if owner := w.owner(asset{mac: n.UplinkMAC}); n.UplinkMAC.IsValid() && owner != n.Name {
		out.UplinkMAC = HardwareAddr{}
		doubt("hardware address %s is also node %s's: %s, or give the node's link one of its own", n.UplinkMAC, owner, deleteIfGone(owner))
	}
	out.HostAddrs = slices.DeleteFunc(slices.Clone(n.HostAddrs), w.Config.isReserved)
	if out.same(n) {
		return n
	}
	return &out
}

// notPrimary says why an address on its primary network is not a node's, and what to do; "" if it is. A node cannot take an egress IP that has a node by
// saying that it has it, unless it is recorded with it; one of which nothing is recorded is new, and joins, whatever comes of that address.
func (w *World) notPrimary(n *Node, a netip.Addr) string {
	own := asset{prefix: Single(a)}
	const another = "give the node's primary network an address of its own"
	switch owner := w.owner(own); {
	case owner == "":
		return "is in a subnet of the cluster's own: " + another
	case owner != n.Name:
		return fmt.Sprintf("is also node %s's: %s, or %s", owner, deleteIfGone(owner), another)
	case w.placed[a] > 0 && len(n.Record.Addrs) > 0 && w.rank(n.Name, own) > 1:
		return "is an egress IP that a node has: take it out of the EgressIP, or " + another
	}
	return ""
}

// deleteIfGone is what helps where a machine was installed anew under another name.
func deleteIfGone(node string) string { return "delete Node " + node + " if it is gone" }

func (w *World) ownedSubnets(n *Node, doubt func(string, ...any)) []netip.Prefix {
	var has [2]bool
	return slices.DeleteFunc(slices.Clone(n.Subnets), func(p netip.Prefix) bool {
		owner, f := w.owner(asset{prefix: p}), FamilyOf(p.Addr())
		switch {
		case owner != n.Name || !w.Config.NodeSubnet(p):
			doubt("subnet %s %s: the node does not use it", p, elsewhere(owner, notASubnet(p)))
			return true
		case has[f]:
			doubt("subnet %s is the node's second one of its family: the node does not use it", p)
			return true
		}
		has[f] = true
		return false
	})
}

func notASubnet(p netip.Prefix) string {
	if p != p.Masked() {
		return "is an address and not a subnet"
	}
	return "is no node's part of the cluster subnets"
}

func elsewhere(owner, otherwise string) string {
	if owner != "" {
		return "is also node " + owner + "'s"
	}
	return otherwise
}

// Said is a node as SetNode was told of it, or nil: for who puts right what is not believed. It does not record.
func (w *World) Said(name string) *Node { return w.said[name] }

// PodIPs are the addresses of a pod that are in its node's subnets: a pod's status and annotations are its node's words. A pod in the host's network has the
// host's addresses, which no egress IP is for.
func (w *View) PodIPs(p *Pod) []netip.Addr {
	w.saw(KindSubnets, p.Node)
	n := w.nodes[p.Node]
	if n == nil || p.HostNetwork {
		return nil
	}
	var out []netip.Addr
	for _, ip := range p.IPs {
		if slices.ContainsFunc(n.Subnets, func(s netip.Prefix) bool { return s.Contains(ip) }) {
			out = append(out, ip)
		}
	}
	return out
}

// NodeAddrs are the addresses that selected pods of this node reach with the node's own address. Of this node they are all of its host. Of another they
// are one a family, its address on the primary network, or its kubelet's where it is believed none: whatever else a node lists could be a host's outside, which
// selected pods must not reach with any address but an egress IP. What an EgressIP's status has placed is no node's, whoever says so.
func (w *View) NodeAddrs(n *Node) []netip.Addr {
	listed := n.HostAddrs
	if n.Name != w.Self {
		listed = w.knownBy(n)
	}
	return slices.DeleteFunc(slices.Clone(listed), w.Placed)
}

// knownBy are the addresses that a node is known by, one a family.
func (w *View) knownBy(n *Node) []netip.Addr {
	var out []netip.Addr
	told := slices.DeleteFunc(slices.Clone(n.InternalIPs), w.Config.isReserved)
	for _, f := range [...]Family{V4, V6} {
		if p, ok := f.Of(n.Primary); ok {
			out = append(out, p.Addr())
		} else if ips := f.OfAddrs(told); len(ips) > 0 {
			out = append(out, ips[0])
		}
	}
	return out
}

// Placed says whether the status of any EgressIP gives an address to a node.
func (w *View) Placed(a netip.Addr) bool {
	w.saw(KindPlaced, a.String())
	return w.placed[a] > 0
}

// place notes the items of an EgressIP's status, old and new. Nodes that say that they have one of these addresses are looked at anew.
func (w *World) place(old, new *EgressIP) []Touch {
	var touched []Touch
	var changed []netip.Addr
	count := func(e *EgressIP, n int) {
		if e == nil {
			return
		}
		for _, i := range e.Items {
			was := w.placed[i.IP] > 0
			if w.placed[i.IP] += n; w.placed[i.IP] == 0 {
				delete(w.placed, i.IP)
			}
			if was != (w.placed[i.IP] > 0) {
				touched = append(touched, Touch{KindPlaced, i.IP.String()})
				changed = append(changed, i.IP)
			}
		}
	}
	count(new, 1)
	count(old, -1)
	for _, ip := range changed {
		for _, name := range w.assetsOf[asset{prefix: Single(ip)}] {
			touched = append(touched, w.putNode(w.believed(w.said[name]))...)
		}
	}
	return touched
}
