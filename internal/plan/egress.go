package plan

import (
	"cmp"
	"net/netip"

	"github.com/egret-net/egret/internal/ref"
)

// Egress is an address that an object gives to packets of pods of a network as their source.
type Egress struct {
	Object  ref.Object
	Network string
	IP      netip.Addr
}

// Compare orders by object, network and address.
func (e Egress) Compare(o Egress) int {
	return cmp.Or(e.Object.Compare(o.Object), cmp.Compare(e.Network, o.Network), e.IP.Compare(o.IP))
}

// String names the network only where it is not the default one.
func (e Egress) String() string {
	if e.Network == ref.DefaultNetwork {
		return e.Object.String() + " " + e.IP.String()
	}
	return e.Object.String() + " " + e.Network + " " + e.IP.String()
}

// Steered says that this node leads its own pods' packets to a node that holds an egress address. Without a node, and
// with the unspecified address of a family, it says that they are dropped (Dropped).
type Steered struct {
	Egress
	Node  string
	Since ref.Since // that node was given the address, as far as the object's status says
}

// Dropped says that this node drops what its own pods send in a family for an object, whose address is unspecified.
func Dropped(of Egress) Steered { return Steered{Egress: of} }

// Ahead is true of a node that has not said yet that it holds the address: pods' packets are led there before, so that
// none leaves otherwise meanwhile.
type Ahead bool

// Compare orders by address, node and time.
func (s Steered) Compare(o Steered) int {
	return cmp.Or(s.Egress.Compare(o.Egress), cmp.Compare(s.Node, o.Node), cmp.Compare(s.Since, o.Since))
}

// Problem is what keeps this node from doing something for an object, as far as the world tells. Such a thing is in no
// plan, so no target can refuse it.
type Problem struct {
	Object          ref.Object
	Reason, Message string
}

// String begins with the object.
func (p Problem) String() string { return p.Object.String() + " " + p.Reason + ": " + p.Message }
