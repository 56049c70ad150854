package sandbox

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"
)

// Side is what a partition cuts a node off from.
type Side string

// The sides of a partition. FromFabric leaves the API server alone; all three leave the node's links up.
const (
	FromAPI    Side = "api"
	FromFabric Side = "fabric"
	FromBoth   Side = "both"
)

// Partition drops what a node sends to one side, and what that side sends to it, on the node's port of the fabric. It
// replaces a partition that is there. Power-off ends it, too: the port goes.
func (c *Cluster) Partition(ctx context.Context, name string, from Side) error {
	n, err := c.nodeByName(name)
	if err != nil {
		return err
	}
	rules, ok := partitionRules(c.layout, from)
	if !ok {
		return fmt.Errorf("no side %q to cut a node off from: there are %s, %s, %s", from, FromAPI, FromFabric,
			FromBoth)
	}
	table := partitionTable(n)
	return c.runNFT(ctx, fmt.Sprintf(`table %[1]s
delete table %[1]s
table %[1]s {
	chain sent { type filter hook ingress device %[2]q priority 0; %[3]s; }
	chain received { type filter hook egress device %[2]q priority 0; %[4]s; }
}`, table, n.port, rules.sent, rules.received))
}

// Heal ends a node's partition. No error without a cut.
func (c *Cluster) Heal(ctx context.Context, name string) error {
	n, err := c.nodeByName(name)
	if err != nil {
		return err
	}
	table := partitionTable(n)
	return c.runNFT(ctx, fmt.Sprintf("table %[1]s\ndelete table %[1]s", table))
}

func partitionTable(n node) string { return "netdev partition_" + n.port }

// partitioning is what is dropped of what a node sends, and of what is sent to it.
type partitioning struct{ sent, received string }

// partitionRules tell the API server apart by its hardware address, which it has for itself. A request for that address
// goes to everybody, so that a node cut off from the rest still may ask.
func partitionRules(l layout, from Side) (partitioning, bool) {
	api := l.controlPlane()
	switch from {
	case FromAPI:
		return partitioning{"ether daddr " + api.mac.String() + " drop", "ether saddr " + api.mac.String() + " drop"},
			true
	case FromBoth:
		return partitioning{"drop", "drop"}, true
	case FromFabric:
		sent := "ether daddr " + api.mac.String() + " accept; "
		for _, ip := range api.ips {
			if ip.Is4() {
				sent += "arp daddr ip " + ip.String() + " accept; "
			} else {
				sent += "ether daddr " + solicitedNodeMAC(ip) + " accept; "
			}
		}
		return partitioning{sent + "drop", "ether saddr " + api.mac.String() + " accept; drop"}, true
	}
	return partitioning{}, false
}

// solicitedNodeMAC is where Ethernet sends a neighbor solicitation for an address (RFC 4291 2.7.1, RFC 2464 7).
func solicitedNodeMAC(ip netip.Addr) string {
	b := ip.As16()
	return net.HardwareAddr{0x33, 0x33, 0xff, b[13], b[14], b[15]}.String()
}

// runNFT runs a script of nftables in the fabric's namespace.
func (c *Cluster) runNFT(ctx context.Context, script string) error {
	var out []byte
	err := InNetns(c.layout.fabricNetns(), func() (err error) {
		cmd := exec.CommandContext(ctx, "nft", "-f", "-")
		cmd.Stdin = strings.NewReader(script)
		out, err = cmd.CombinedOutput()
		return err
	})
	if err != nil {
		return fmt.Errorf("rules of the partition: %w: %s", err, out)
	}
	return nil
}
