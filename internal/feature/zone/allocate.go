package zone

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Allocation is what a node gets from the controller.
type Allocation struct {
	ID            int            // 0: none is free
	Subnets       []netip.Prefix // one a family, in the order of the families; fewer where none is free
	Join, Transit []netip.Prefix // the node's addresses there, one a family
	// Further are its subnets of networks beside the default one, one a family, by network.
	Further map[string]world.NodeNetwork
	Record  world.Record // the addresses it names that are the node's own
	// Problems say what was wrong or is lacking, and what to do.
	Problems []decide.Notice
}

// Reasons of findings about nodes.
const (
	notBelieved  = "NotBelieved" // as the node itself reports
	noIDFree     = "NoIDFree"
	noSubnetFree = "NoSubnetFree"
)

// refuseWith notes what was found, with the words for it.
func (a *Allocation) refuseWith(f decide.Finding, format string, args ...any) {
	f.Kind = reasonAllocation
	a.Problems = append(a.Problems, decide.Notice{Finding: f, Event: reasonAllocation,
		Message: fmt.Sprintf(format, args...)})
}

// allocateNode gives a node an id and pod subnets, and says what is recorded of it. The node keeps what it has, as far
// as the world believes it, also while it is going away. It gets the lowest id and subnets that are free, or the
// subnets that a Node of its name has had lately.
func (t *taken) allocateNode(w *world.View, n *world.Node) (a Allocation) {
	for _, p := range n.Problems {
		a.refuseWith(decide.Finding{Reason: notBelieved, Part: p.About, Node: p.Owner}, "%s", p.Text)
	}
	if a.ID = n.ID; a.ID == 0 {
		a.ID = t.freeID(w.Config.MaxID())
	}
	if a.ID == 0 {
		a.refuseWith(decide.Finding{Reason: noIDFree},
			"no id up to %d is free: delete nodes that are gone, or use larger join and transit subnets",
			w.Config.MaxID())
	}
	a.Subnets = t.allocateSubnets(w.Config.DefaultNetwork(), n, &a)
	recorder{w, t}.record(n, &a)
	a.Join, a.Transit = linkAddresses(w.Config, a.ID)
	return a
}

// allocateSubnets gives a node a subnet a family of a network. It keeps those that it has.
func (t *taken) allocateSubnets(net *world.Network, n *world.Node, a *Allocation) (out []netip.Prefix) {
	for _, f := range net.Families() {
		p, has := f.Of(n.In(net.Name).Subnets)
		if !has {
			p, has = t.freeSubnet(net, f, n.Name)
		}
		if has {
			out = append(out, p)
			continue
		}
		finding, of, add := decide.Finding{Reason: noSubnetFree, Family: f}, "", "a cluster subnet"
		if net.Name != ref.DefaultNetwork {
			finding.Part, of, add = net.Name, " of network "+net.Name, "a subnet to it"
		}
		a.refuseWith(finding, "no IP%s subnet%s is free in %v: delete nodes that are gone, or add %s", f, of,
			net.Cluster(f), add)
	}
	return out
}

// isSettled reports whether a node has all that it was allocated, and is recorded with all that it claims. Then its
// allocation follows from the node alone, but for its parts of networks beside the default one.
func (a Allocation) isSettled(n *world.Node) bool {
	return len(a.Problems) == 0 && a.ID == n.ID && slices.Equal(a.Subnets, n.Subnets) && a.Record.Same(n.Record) &&
		(n.UplinkMAC == n.Record.MAC || !n.UplinkMAC.IsValid())
}

func linkAddresses(c *world.Config, id int) (join, transit []netip.Prefix) {
	if id == 0 {
		return nil, nil
	}
	for _, f := range c.Families() {
		join, transit = append(join, c.Join(id, f)), append(transit, c.Transit(id, f))
	}
	return join, transit
}
