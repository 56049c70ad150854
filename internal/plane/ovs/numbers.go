package ovs

import (
	"context"
	"strconv"

	"github.com/egret-net/egret/internal/plan"
)

// OFPort is the OpenFlow port number of an interface, once ovs-vswitchd has opened its device.
func (d *DB) OFPort(name string) (int, bool) {
	row, ok, err := d.interfaceNamed(context.Background(), name)
	// ovs-vswitchd writes -1 for a device that it cannot open.
	if err != nil || !ok || row.OFPort == nil || *row.OFPort <= 0 {
		return 0, false
	}
	return *row.OFPort, true
}

// CTZone is the conntrack zone that ovn-controller gave to name ("GR_n1_snat"), which it notes on br-int.
func (d *DB) CTZone(ctx context.Context, name string) (int, bool) {
	all, err := listRows[bridge](ctx, d)
	if err != nil {
		return 0, false
	}
	for _, b := range all {
		if b.Name != plan.IntegrationBridge {
			continue
		}
		zone, err := strconv.Atoi(b.ExternalIDs["ct-zone-"+name])
		return zone, err == nil
	}
	return 0, false
}

// topology is which port is on which bridge.
type topology struct {
	bridges map[string]bridge
	ports   map[string]place // by name
}

type place struct {
	bridge string
	port   string // UUID
	iface  iface
}

func (d *DB) readTopology(ctx context.Context) (topology, error) {
	bridges, err := listRows[bridge](ctx, d)
	if err != nil {
		return topology{}, err
	}
	ports, err := listRows[port](ctx, d)
	if err != nil {
		return topology{}, err
	}
	ifaces, err := listRows[iface](ctx, d)
	if err != nil {
		return topology{}, err
	}
	return newTopology(bridges, ports, ifaces), nil
}

func newTopology(bridges []bridge, ports []port, ifaces []iface) topology {
	t := topology{map[string]bridge{}, map[string]place{}}
	at := map[string]string{} // bridge's name by port's UUID
	for _, b := range bridges {
		t.bridges[b.Name] = b
		for _, p := range b.Ports {
			at[p] = b.Name
		}
	}
	byID := map[string]iface{}
	for _, i := range ifaces {
		byID[i.UUID] = i
	}
	for _, p := range ports {
		if b, ok := at[p.UUID]; ok && len(p.Interfaces) == 1 { // bonds are nobody's here
			t.ports[p.Name] = place{b, p.UUID, byID[p.Interfaces[0]]}
		}
	}
	return t
}
