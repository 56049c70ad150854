package networks

import (
	"slices"

	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// follower keeps the networks of a world in step with its definitions.
type follower struct {
	world *world.World
	named map[string][]*Definition // those that count, by the name of their network
}

// KeepTables has a world keep requests and definitions.
func KeepTables(w *world.World) {
	request := func(one, all world.Kind, object string) {
		world.Keep(w, world.Spec[Request]{One: one, All: all, Object: object, Key: (*Request).Key,
			Same: (*Request).sameRequest, Decides: decidesRequest()})
	}
	request(world.KindUserNetwork, world.KindUserNetworks, ref.UserDefinedNetwork)
	request(world.KindClusterNetwork, world.KindClusterNetworks, ref.ClusterUserDefinedNetwork)
	f := follower{w, map[string][]*Definition{}}
	world.Keep(w, world.Spec[Definition]{One: world.KindDefinition, All: world.KindDefinitions,
		Object: ref.NetworkAttachmentDefinition, Key: (*Definition).Key, Same: (*Definition).sameDefinition,
		Changed: f.definitionChanged, Decides: decidesDefinition()})
}

// definitionChanged follows one definition. A network that the definition keeps is computed once: its readers learn
// only of what has changed.
func (f follower) definitionChanged(old, now *Definition) {
	for _, d := range []*Definition{old, now} {
		if d == nil {
			continue
		}
		name := d.Config.Name
		list := slices.DeleteFunc(slices.Clone(f.named[name]), func(o *Definition) bool { return o.Key() == d.Key() })
		if d == now && d.Counts() {
			list = append(list, d)
		}
		if f.named[name] = list; len(list) == 0 {
			delete(f.named, name)
		}
		if d == now || now == nil || now.Config.Name != name {
			f.renewNetwork(name)
		}
	}
}

// renewNetwork computes the network of a name. The oldest definition describes it, and those with its number belong to
// it: the controller has compared them. Subnets that are added come to one definition after the other, and are the
// network's as soon as one has them. The order in which a program learns of definitions does not matter.
func (f follower) renewNetwork(name string) {
	list := f.named[name]
	if len(list) == 0 {
		f.world.DelNetwork(name)
		return
	}
	slices.SortFunc(list, (*Definition).CompareAge)
	n := networkOf(f.world.Config, list[0])
	for _, d := range list {
		if d.Number != list[0].Number {
			continue
		}
		n.Namespaces = append(n.Namespaces, d.Namespace)
		for _, s := range d.Config.Subnets {
			if !slices.Contains(n.Subnets, s) {
				n.Subnets = append(slices.Clip(n.Subnets), s)
			}
		}
	}
	slices.Sort(n.Namespaces)
	n.Namespaces = slices.Compact(n.Namespaces)
	f.world.SetNetwork(n)
}

// networkOf is the network of a definition, without its namespaces.
func networkOf(c *world.Config, d *Definition) *world.Network {
	n := &world.Network{Name: d.Config.Name, ID: d.Number.ID, Subnets: d.Config.Subnets, MTU: d.Config.MTU,
		Transit: c.TransitSubnets}
	for f := range world.Family(2) {
		if d.Config.hasFamily(f) {
			n.Join = append(n.Join, d.Config.JoinOf(f))
		}
	}
	return n
}
