package world

import (
	"iter"
	"net/netip"
	"slices"
)

// NodeAddrs returns the addresses that selected pods of this node reach with the node's own address. Of this node they
// are all of its host. Of another node they are the addresses that it is recorded with, and those of its host-cidrs
// that its word alone does not make its own (isVouched). An address that an EgressIP's status has placed is no node's.
func (w *View) NodeAddrs(n *Node) []netip.Addr {
	listed := n.HostAddrs
	if n.Name != w.Self {
		listed = w.knownBy(n)
		for _, a := range n.HostAddrs {
			if !slices.Contains(listed, a) && w.isVouched(n, a) {
				listed = append(listed, a)
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(listed), w.Placed)
}

// knownBy returns the addresses that another node has by its record, one a family. While nothing is recorded of the
// node they are its address on the primary network, or its kubelet's where the node is believed none.
func (w *View) knownBy(n *Node) []netip.Addr {
	no := func(a netip.Addr) bool { return w.Config.isReserved(a) || NotAHosts(Single(a)) != "" }
	if len(n.Record.Addrs) > 0 {
		return slices.DeleteFunc(slices.Clone(n.Record.Addrs), no)
	}
	var out []netip.Addr
	told := slices.DeleteFunc(slices.Clone(n.InternalIPs), no)
	for _, f := range [...]Family{V4, V6} {
		if p, ok := f.Of(n.Primary); ok && NotAHosts(p) == "" {
			out = append(out, p.Addr())
		} else if ips := f.OfAddrs(told); !ok && len(ips) > 0 {
			out = append(out, ips[0])
		}
	}
	return out
}

// isVouched reports whether another node's further address is believed: it lies in a network in which yet another node
// has another address, or that people confirm. A node alone could otherwise name hosts outside, and selected pods of
// all nodes would reach them without an egress IP. The gateway of this host, and the address that a third node is
// recorded with, are not believed. Two nodes can name one address: a virtual address moves between them.
func (w *View) isVouched(n *Node, a netip.Addr) bool {
	another := func(name string) bool { return name != n.Name }
	if h := w.Host(); h != nil && slices.Contains(h.Gateways, a) || slices.ContainsFunc(w.NodesAt(a), another) {
		return false
	}
	for _, p := range n.Confirmed {
		if p.Contains(a) && NotAHosts(netip.PrefixFrom(a, p.Bits())) == "" {
			return true
		}
	}
	w.noteRead(KindNetworkLengths, "")
	for bits, networks := range w.lengths[:a.BitLen()] {
		if p := netip.PrefixFrom(a, bits); networks > 0 && NotAHosts(p) == "" {
			w.noteRead(KindNodeNetwork, p.Masked().String())
			if w.nodesIn[p.Masked()].vouchesFor(n.Name, a) {
				return true
			}
		}
	}
	return false
}

// IsNetworkEnd reports whether an address is the first or last one of a network in which two nodes have addresses. One
// node's word is not enough: it would take addresses from Services.
func (w *View) IsNetworkEnd(a netip.Addr) bool {
	w.noteRead(KindNetworkLengths, "")
	for bits, networks := range w.lengths[:a.BitLen()] {
		if p := netip.PrefixFrom(a, bits); networks > 0 && isEnd(p, a) {
			w.noteRead(KindNodeNetwork, p.Masked().String())
			if len(w.nodesIn[p.Masked()]) > 1 {
				return true
			}
		}
	}
	return false
}

// members are the nodes with addresses in one network, and these addresses.
type members map[string][]netip.Addr

// vouchesFor reports whether a node other than the named one has an address in the network other than a. The same
// address on several nodes proves nothing: docker0 has it on each host, and behind the default gateway a machine may.
func (m members) vouchesFor(node string, a netip.Addr) bool {
	other := func(b netip.Addr) bool { return b != a }
	for name, addrs := range m {
		if name != node && slices.ContainsFunc(addrs, other) {
			return true
		}
	}
	return false
}

// isSettled reports whether the network vouches for any address of any node: three nodes have addresses that differ.
func (m members) isSettled() bool {
	var first []netip.Addr
	for _, addrs := range m {
		if !slices.Contains(first, addrs[0]) {
			first = append(first, addrs[0])
		}
		if len(first) == 3 {
			return true
		}
	}
	return false
}

// updateNodeNetworks notes the networks that a node has now. A network changes unless it vouches for any address
// before and afterwards, whoever joins.
func (w *World) updateNodeNetworks(name string, was, is []netip.Prefix) {
	if slices.Equal(was, is) {
		return
	}
	for p := range networksOf(slices.Concat(was, is)) {
		m := w.nodesIn[p]
		before, settled := len(m), m.isSettled()
		w.noteNetworkMember(p, name, addrsIn(p, is))
		now := len(w.nodesIn[p])
		if !settled || !w.nodesIn[p].isSettled() {
			w.noteChanged(KindNodeNetwork, p.String())
		}
		if length := &w.lengths[p.Bits()]; min(before, now) == 0 && before != now {
			if *length += now - before; *length == max(now-before, 0) {
				w.noteChanged(KindNetworkLengths, "")
			}
		}
	}
}

// noteNetworkMember notes a node's addresses in a network; none: it is no longer a member.
func (w *World) noteNetworkMember(network netip.Prefix, node string, addrs []netip.Addr) {
	m := w.nodesIn[network]
	if m == nil {
		m = members{}
		w.nodesIn[network] = m
	}
	if m[node] = addrs; len(addrs) == 0 {
		delete(m, node)
	}
	if len(m) == 0 {
		delete(w.nodesIn, network)
	}
}

// networksOf yields the networks of addresses with their lengths, each once, in their order.
func networksOf(cidrs []netip.Prefix) iter.Seq[netip.Prefix] {
	var out []netip.Prefix
	for _, p := range cidrs {
		if m := p.Masked(); !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return slices.Values(out)
}

func addrsIn(network netip.Prefix, cidrs []netip.Prefix) []netip.Addr {
	var out []netip.Addr
	for _, p := range cidrs {
		if p.Masked() == network && !slices.Contains(out, p.Addr()) {
			out = append(out, p.Addr())
		}
	}
	return out
}

// hostableCIDRs returns a node's addresses in networks that can have hosts, with the networks' lengths.
func (n *Node) hostableCIDRs() []netip.Prefix {
	if n == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Concat(n.Primary, n.CIDRs), func(p netip.Prefix) bool { return !hasHostRoom(p) })
}
