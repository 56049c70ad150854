package compiletest

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/world"
)

// networks are the names of those beside the default one that a Small world may come to have.
var networks = [...]string{"blue", "red"}

// drawNetwork is a network that comes, changes or goes.
func drawNetwork(t *rapid.T) func(*world.World) {
	n := randomNetwork(t)
	if rapid.IntRange(0, 3).Draw(t, "network deleted") == 0 {
		return func(w *world.World) { w.DelNetwork(n.Name) }
	}
	return func(w *world.World) { w.SetNetwork(n) }
}

// randomNetwork has the default network's very subnets, or some of them. Both may ask for one number.
func randomNetwork(t *rapid.T) *world.Network {
	n := *Config(world.SharedGateway).DefaultNetwork()
	n.Name = rapid.SampledFrom(networks[:]).Draw(t, "network")
	n.ID = rapid.IntRange(1, 2).Draw(t, "number")
	if rapid.IntRange(0, 3).Draw(t, "one family") == 0 {
		n.Subnets = n.Subnets[:1]
	}
	n.Namespaces = []string{fmt.Sprint("ns", rapid.IntRange(0, 2).Draw(t, "whose network it is"))}
	switch rapid.IntRange(0, 7).Draw(t, "oddity") {
	case 0:
		n.ID = 5000 // beyond what marks and zones have room for
	case 1:
		n.Namespaces = nil
	case 2:
		n.Namespaces = []string{"ns0", "ns1", "ns2"}
	}
	return &n
}

// joinNetworks gives a node its own subnets of networks, or another node's.
func joinNetworks(t *rapid.T, n *world.Node) {
	further := map[string]world.NodeNetwork{}
	for _, name := range networks {
		if rapid.IntRange(0, 3).Draw(t, "in network "+name) > 0 {
			part := world.NodeNetwork{Subnets: n.Subnets}
			if rapid.IntRange(0, 4).Draw(t, "with others' subnets") == 0 {
				part.Subnets = Node(rapid.IntRange(1, 3).Draw(t, "whose")).Subnets
			}
			further[name] = part
		}
	}
	if len(further) > 0 { // a node in no other network says nothing of any
		n.Further = further
	}
}

// inNetworks gives a pod the same addresses in networks that it has in the default one.
func inNetworks(t *rapid.T, p *world.Pod) *world.Pod {
	for _, name := range networks {
		if rapid.IntRange(0, 2).Draw(t, "in network "+name) == 0 {
			p.Further = append(p.Further, world.Interface{Network: name, MAC: world.MAC(p.IPs[0]), IPs: p.IPs})
		}
	}
	return p
}
