package zone

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/world"
)

// secondaryNetworks is api/v1's AnnotationSecondaryNetworks.
const secondaryNetworks = "egret.k8s.ovn.org/secondary-networks"

// A node that is recorded may get another address. By its own word alone it gets none far away: selected pods of all
// nodes reach what is recorded with their node's address, so that a node that is in wrong hands could name any host
// outside and have them reach it with that.

// near is how far from its recorded address a node may move by its own word, by family: a prefix of that length is
// commonly one link, and of one owner.
var near = [...]int{world.V4: 24, world.V6: 64}

// strayReason says why a node's new address is not believed on its word alone, and what to do; "" if it is near, in a
// network of another recorded node, or in one that people confirm. A family of which nothing is recorded begins as a
// new node does.
func (r recorder) strayReason(n *world.Node, p netip.Prefix) (reason, why string) {
	f, ip := world.FamilyOf(p.Addr()), p.Addr()
	old := f.OfAddrs(n.Record.Addrs)
	contains := func(c netip.Prefix) bool { return c.Contains(ip) }
	if len(old) == 0 || p.Contains(old[0]) && netip.PrefixFrom(old[0], near[f]).Contains(ip) ||
		slices.ContainsFunc(n.Confirmed, contains) || r.isVouched(n, ip) {
		return "", ""
	}
	return elsewhere, fmt.Sprintf("is in no network that another node has, and far from %s, which stays recorded: "+
		"selected pods of other nodes do not reach the node there with their nodes' addresses. If the node has moved, "+
		"add %s to annotation %s of Node %s, or delete the Node and have it join again", old[0], p.Masked(),
		secondaryNetworks, n.Name)
}

// isVouched says whether another node is recorded with an address of a network that has this one, too.
func (r recorder) isVouched(n *world.Node, ip netip.Addr) bool {
	for _, name := range r.w.Nodes() {
		other := r.w.Node(name)
		for _, q := range other.Primary {
			if name != n.Name && slices.Contains(other.Record.Addrs, q.Addr()) && q.Contains(ip) &&
				world.NotAHosts(q) == "" && world.NotAHosts(netip.PrefixFrom(ip, q.Bits())) == "" {
				return true
			}
		}
	}
	return false
}
