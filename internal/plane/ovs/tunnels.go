package ovs

import (
	"context"
	"strconv"
)

// nodeKey is the key of external_ids that names the node at the other end of a tunnel of the plan.
const nodeKey = "egret-node"

// Tunnel is what BFD says of a tunnel of the plan (ovs-vswitchd.conf.db(5), Interface bfd_status).
type Tunnel struct {
	Node  string
	Up    bool
	WasUp bool // it is up, or was before; a start of ovs-vswitchd clears it
}

// TunnelsChanged gets a value when what Tunnels says may have changed since the last one was taken.
func (d *DB) TunnelsChanged() <-chan struct{} { return d.tunnels }

// Tunnels are those of the plan that run BFD, in no order.
func (d *DB) Tunnels(ctx context.Context) ([]Tunnel, error) {
	ifaces, err := listRows[iface](ctx, d)
	if err != nil {
		return nil, err
	}
	var out []Tunnel
	for _, i := range ifaces {
		if i.ExternalIDs[ownerKey] == ownerPlan && i.ExternalIDs[nodeKey] != "" {
			out = append(out, readTunnel(i))
		}
	}
	return out, nil
}

// readTunnel reads flap_count too: how often the session came up or went down.
func readTunnel(i iface) Tunnel {
	flaps, _ := strconv.Atoi(i.BFDStatus["flap_count"])
	up := i.BFDStatus["state"] == "up"
	return Tunnel{Node: i.ExternalIDs[nodeKey], Up: up, WasUp: up || flaps > 0}
}
