package egressip

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/world"
)

// NotSteered says why this node's own pods are not steered by an EgressIP though status names this node for an address
// of it; "" if they are, or if it is not named. For a moment that is so in every move. A node of which it stays true
// serves the pods of others and not its own.
func NotSteered(w *world.World, name string, ip netip.Addr) string {
	e, f := w.EgressIP(name), world.FamilyOf(ip)
	if e == nil || !slices.Contains(e.Items, world.Assignment{Node: w.Self, IP: ip}) {
		return ""
	}
	if s := defaultNetwork(&w.View).steerPods(&w.View, e, f); s.action == "reroute" && !s.hasUnreported() {
		return ""
	}
	if y := w.Yielded(name, ip); y != nil {
		return fmt.Sprintf("it yields to another machine that announces the address (node %q)", y.To)
	}
	n, own := w.Node(w.Self), w.Own()
	switch {
	case n == nil || n.ID == 0:
		return "the Node is gone, or has no number: is egret-controller running?"
	case own == nil || !slices.Contains(own.Holds[name], ip):
		return "OVS does not have the flows that translate to it: see the other problems, and the agent's log"
	case own.BootID != n.BootID:
		return fmt.Sprintf("the Node says that it was booted as %s, and this is %s: is the kubelet running?", n.BootID,
			own.BootID)
	}
	return "no link of this host is in its network"
}
