package node

import (
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/ovs"
)

// bridgePorts are the ports that flows name. ovn-controller makes the patch ports, each named after what the plan calls
// the localnet port of a network.
type bridgePorts struct {
	*ovs.DB
	node string
}

func (p bridgePorts) PatchInterface(bridge, network string) string {
	return plan.Names{Network: network}.PatchInterface(bridge, p.node)
}
