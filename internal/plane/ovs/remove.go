package ovs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ovn-kubernetes/libovsdb/model"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"
	"github.com/vishvananda/netlink"
)

// ReturnUplink undoes MoveUplink: addresses and main-table routes of the bridge's own port go to the device. It may be
// interrupted anywhere and called again. The bridge stays, and so does what passes it. An address that was given for a
// time has no end afterwards either.
func ReturnUplink(u Uplink) error {
	device, err := netlink.LinkByName(u.Device)
	if err != nil {
		return fmt.Errorf("find uplink %s: %w", u.Device, err)
	}
	local, err := netlink.LinkByName(u.Bridge)
	if _, none := errors.AsType[netlink.LinkNotFoundError](err); none {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find the port of bridge %s: %w", u.Bridge, err)
	}
	if err := netlink.LinkSetUp(device); err != nil {
		return fmt.Errorf("set %s up: %w", u.Device, err)
	}
	return moveConfig(local, device)
}

// RemoveBridges removes these bridges from the database, and does not wait for ovs-vswitchd. Of a bridge with ports of
// somebody else all other ports are removed, and the error names those. uplink is the device that MoveUplink has put on
// one.
func (d *DB) RemoveBridges(ctx context.Context, uplink string, names ...string) error {
	d.writes.Lock()
	defer d.writes.Unlock()
	t, err := d.readTopology(ctx)
	if err != nil {
		return err
	}
	root, err := d.rootRow(ctx)
	if err != nil {
		return err
	}
	var ops []ovsdb.Operation
	var kept []error
	for _, name := range names {
		b, there := t.bridges[name]
		if !there {
			continue
		}
		more, err := d.removeBridge(t, root, b, uplink)
		if err != nil {
			return fmt.Errorf("remove bridge %s: %w", name, err)
		}
		if others := t.othersPorts(name, uplink); len(others) > 0 {
			kept = append(kept, fmt.Errorf("bridge %s has ports that are not Egret's: %s: take them off, and run "+
				"`ovs-vsctl del-br %s`", name, strings.Join(others, ", "), name))
		}
		ops = append(ops, more...)
	}
	return errors.Join(append(kept, d.commitOps(ctx, ops))...)
}

// removeBridge takes a bridge out of the database, or only our ports off a bridge that others use.
func (d *DB) removeBridge(t topology, root *openVSwitch, b bridge, uplink string) ([]ovsdb.Operation, error) {
	others := t.othersPorts(b.Name, uplink)
	if len(others) == 0 {
		return d.client.Where(root).Mutate(root, model.Mutation{Field: &root.Bridges,
			Mutator: ovsdb.MutateOperationDelete, Value: []string{b.UUID}})
	}
	var ops []ovsdb.Operation
	for name, at := range t.ports {
		if at.bridge != b.Name || name == b.Name || slices.Contains(others, name) {
			continue
		}
		more, err := d.removePort(removal{b, at.port})
		if err != nil {
			return nil, err
		}
		ops = append(ops, more...)
	}
	return ops, nil
}

// othersPorts are the devices on a bridge that neither Egret nor ovn-controller has put there. The latter makes patch
// ports and tunnels alone.
func (t topology) othersPorts(bridge, uplink string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(t.ports)) {
		at := t.ports[name]
		isDevice := at.iface.Type == "" || at.iface.Type == "internal"
		if at.bridge == bridge && isDevice && name != bridge && name != uplink && at.iface.ExternalIDs[ownerKey] == "" {
			names = append(names, name)
		}
	}
	return names
}
