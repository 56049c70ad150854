package ovs

import (
	"context"
	"fmt"
	"maps"

	"github.com/ovn-kubernetes/libovsdb/model"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"
)

// Bridge says what a bridge must be. Empty fields leave what is there.
type Bridge struct {
	Name         string
	DatapathType string // "netdev", or "" or "system" for the kernel's
	FailMode     string // "secure" forwards nothing without flows; "standalone" switches
	HWAddr       string // fixed MAC of the bridge's own port
}

// EnsureBridge makes b, or changes what differs, and waits until ovs-vswitchd has done so.
func (d *DB) EnsureBridge(ctx context.Context, b Bridge) error {
	d.writes.Lock()
	defer d.writes.Unlock()
	t, err := d.readTopology(ctx)
	if err != nil {
		return err
	}
	have, ok := t.bridges[b.Name]
	if !ok {
		return d.createBridge(ctx, b)
	}
	want := have
	want.OtherConfig = maps.Clone(have.OtherConfig)
	b.applyTo(&want)
	if want.DatapathType == have.DatapathType && equalPtr(want.FailMode, have.FailMode) &&
		maps.Equal(want.OtherConfig, have.OtherConfig) {
		return nil
	}
	ops, err := d.client.Where(&have).Update(&want, &want.DatapathType, &want.FailMode, &want.OtherConfig)
	if err != nil {
		return fmt.Errorf("change bridge %s: %w", b.Name, err)
	}
	if err := d.commitOps(ctx, ops); err != nil {
		return fmt.Errorf("change bridge %s: %w", b.Name, err)
	}
	return d.AwaitSwitchd(ctx)
}

func (b Bridge) applyTo(row *bridge) {
	if b.DatapathType != "" {
		row.DatapathType = b.DatapathType
	}
	if b.FailMode != "" {
		row.FailMode = &b.FailMode
	}
	if b.HWAddr != "" {
		if row.OtherConfig == nil {
			row.OtherConfig = map[string]string{}
		}
		row.OtherConfig["hwaddr"] = b.HWAddr
	}
}

func (d *DB) createBridge(ctx context.Context, b Bridge) error {
	root, err := d.rootRow(ctx)
	if err != nil {
		return err
	}
	i := &iface{UUID: "iface", Name: b.Name, Type: "internal"}
	p := &port{UUID: "port", Name: b.Name, Interfaces: []string{i.UUID}}
	row := &bridge{UUID: "bridge", Name: b.Name, Ports: []string{p.UUID}}
	b.applyTo(row)
	ops, err := d.createRows(i, p, row)
	if err != nil {
		return fmt.Errorf("create bridge %s: %w", b.Name, err)
	}
	link, err := d.client.Where(root).Mutate(root, model.Mutation{Field: &root.Bridges,
		Mutator: ovsdb.MutateOperationInsert, Value: []string{row.UUID}})
	if err != nil {
		return fmt.Errorf("create bridge %s: %w", b.Name, err)
	}
	if err := d.commitOps(ctx, append(ops, link...)); err != nil {
		return fmt.Errorf("create bridge %s: %w", b.Name, err)
	}
	return d.AwaitSwitchd(ctx)
}

func equalPtr[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}
