package node

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/networks"
	"github.com/egret-net/egret/internal/node/cniserver"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// subnetWait is how long ADD waits for the node's subnets of a network, which the controller gives for its first pod.
const subnetWait = 5 * time.Second

// ownNetwork is the name of a namespace's own network; "": it has none.
func ownNetwork(w *world.World, namespace string) string {
	if name := w.PrimaryNetwork(namespace); name != ref.DefaultNetwork {
		return name
	}
	return ""
}

// whyMisplaced says why an attachment is not in the networks of its namespace; "": it is.
func whyMisplaced(w *world.World, at *world.Attachment) string {
	is, should := "", ownNetwork(w, at.Namespace)
	for _, i := range at.Further {
		is = i.Network
	}
	if is == should {
		return ""
	}
	return fmt.Sprintf("the network of namespace %s has just changed (%q, now %q); the runtime will try again",
		at.Namespace, is, should)
}

// PrimaryNetwork waits briefly for this node's subnets of a namespace's own network.
func (a *Agent) PrimaryNetwork(ctx context.Context, namespace string) (*cniserver.PrimaryNetwork, error) {
	short, cancel := context.WithTimeout(ctx, subnetWait)
	defer cancel()
	name := ""
	n, err := askUntilFinal(short, a.watchers, func(w *world.World) (*cniserver.PrimaryNetwork, bool) {
		name = ownNetwork(w, namespace)
		n := a.networkHere(w, namespace, name)
		return n, n != nil
	})
	switch {
	case err == nil:
		return n, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("namespace %s: this node has no subnet of its network yet, which egret-controller gives for "+
		"the first pod: is it running, and has the network a subnet that is free? See the Events of node %s",
		namespace, a.self)
}

// networkHere is a namespace's own network, once this node has all of its part and a definition is known.
func (a *Agent) networkHere(w *world.World, namespace, name string) *cniserver.PrimaryNetwork {
	net, self := w.Network(name), w.Node(a.self)
	if net == nil || self == nil || len(self.In(name).Subnets) < len(net.Families()) {
		return nil
	}
	out := &cniserver.PrimaryNetwork{Names: plan.Names{Network: name, ID: net.ID}, Subnets: self.In(name).Subnets,
		MTU: a.MTU()}
	if net.MTU > 0 {
		out.MTU = net.MTU
	}
	for d := range world.Each[networks.Definition](&w.View, world.KindDefinition) {
		if d.Namespace == namespace && d.Counts() && d.Config.Name == name {
			out.Definition = d.Key()
			return out
		}
	}
	return nil
}

// FurtherNetworks are those beside the default one that this node has subnets of.
func (a *Agent) FurtherNetworks(ctx context.Context) (names []string, err error) {
	err = a.loop.Ask(ctx, func(w *world.World) {
		if self := w.Node(a.self); self != nil {
			names = slices.Collect(maps.Keys(self.Further))
		}
	})
	return names, err
}

// DefaultInside are the subnets of the default network: pods, and routers.
func (a *Agent) DefaultInside() (out []netip.Prefix) {
	for _, s := range a.config.ClusterSubnets {
		out = append(out, s.CIDR)
	}
	return slices.Concat(out, a.config.JoinSubnets)
}
