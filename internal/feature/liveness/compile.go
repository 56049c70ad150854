// Package liveness compiles what tells this node whether others still forward: a BFD session (RFC 5880) with each node
// that it needs to know of.
//
// In: nodes, whether they host egress IPs, and this host's address. Out: one Geneve port a session on a bridge of our
// own. The state of a session comes back as a fact of the world (World.Tunnel), from OVS' own database. README.md says
// what becomes of it.
package liveness

import (
	"net/netip"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Sessions are those with other nodes.
type Sessions struct{}

func (Sessions) Name() string    { return "liveness" }
func (Sessions) Per() world.Kind { return world.KindNode }

// Compile adds the session with one node. Both ends must have one, and decide by the same objects: one of the two hosts
// egress IPs, or is an egress node that may at any time.
func (Sessions) Compile(w *world.View, key string, out *plan.Rows) {
	self, h, ok := w.Zone()
	n := w.Node(key)
	if !ok || w.Config.ReachabilityTimeout == 0 || n == nil || key == w.Self || n.ID == 0 || !w.Hosts(key) &&
		!w.Hosts(self.Name) {
		return
	}
	local, remote, ok := tunnelEndpoints(h.Primary, n.Primary)
	if !ok {
		return
	}
	plan.Add(&out.Ports, plan.Port{Bridge: plan.LivenessBridge, Name: plan.LivenessPort(n.ID)}, plan.PortSpec{
		Type: "geneve", ExternalIDs: plan.Pairs(NodeKey, n.Name),
		Options: tunnelOptions(w.Config, local, remote),
		BFD:     plan.Pairs("enable", "true", "min_tx", interval, "min_rx", interval, "mult", multiplier),
	})
}

// tunnelOptions are those of OVN's own tunnel to that node, but for the key.
func tunnelOptions(c *world.Config, local, remote netip.Addr) string {
	o := []string{"key", tunnelKey, "local_ip", local.String(), "remote_ip", remote.String()}
	if c.EncapPort != world.GenevePort {
		o = append(o, "dst_port", plan.Itoa(c.EncapPort))
	}
	return plan.Pairs(o...)
}

// NodeKey is the key of a port's external_ids that names the node at the other end.
const NodeKey = "egret-node"

const (
	// tunnelKey tells the session's packets from those of OVN, whose tunnels share address and UDP port: it has no
	// datapath of that key that spans nodes.
	tunnelKey = "7"
	// A node is down when it has been silent for four intervals of 100 ms. See README.md for what was measured.
	interval, multiplier = "100", "4"
)

// tunnelEndpoints are those of OVN's tunnel to that node (feature zone, and the setting ovn-encap-ip): the session is
// to fail when that does.
func tunnelEndpoints(own, other []netip.Prefix) (local, remote netip.Addr, ok bool) {
	if len(other) == 0 {
		return local, remote, false
	}
	remote = other[0].Addr()
	p, ok := world.FamilyOf(remote).Of(own)
	return p.Addr(), remote, ok
}
