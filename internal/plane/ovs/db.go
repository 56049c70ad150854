package ovs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-logr/logr"
	"github.com/ovn-kubernetes/libovsdb/client"
	"github.com/ovn-kubernetes/libovsdb/model"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/egret-net/egret/internal/plane"
)

const (
	reconnectEvery   = 50 * time.Millisecond
	reconnectTimeout = 2 * time.Second
	// readTimeout bounds how long a read waits for the cache to be whole again while ovsdb-server is away.
	readTimeout = time.Second
	// writeTimeout bounds a transaction, and settleTimeout what ovs-vswitchd needs to carry it out, devices of others
	// included.
	writeTimeout  = 5 * time.Second
	settleTimeout = 10 * time.Second
)

// DB is one monitored connection to the local Open_vSwitch database. It connects again by itself; writes wait for that.
type DB struct {
	client  client.Client
	log     *slog.Logger
	changed chan struct{}
	tunnels chan struct{}
	writes  sync.Mutex // one read-modify-write at a time

	mu   sync.Mutex
	wake chan struct{} // closed at the next change
}

// Connect opens the database at endpoint (unix:/run/openvswitch/db.sock), trying until ctx is done.
func Connect(ctx context.Context, endpoint string, log *slog.Logger) (*DB, error) {
	m, err := dbModel()
	if err != nil {
		return nil, fmt.Errorf("build the database model: %w", err)
	}
	quiet := logr.Discard()
	c, err := client.NewOVSDBClient(m, client.WithEndpoint(endpoint), client.WithLogger(&quiet),
		client.WithReconnect(reconnectTimeout, backoff.NewConstantBackOff(reconnectEvery)))
	if err != nil {
		return nil, fmt.Errorf("make a client of the OVS database: %w", err)
	}
	d := &DB{client: c, log: log, changed: make(chan struct{}, 1), tunnels: make(chan struct{}, 1),
		wake: make(chan struct{})}
	connect := func() error { return c.Connect(ctx) }
	if err := backoff.Retry(connect, backoff.WithContext(backoff.NewConstantBackOff(reconnectEvery), ctx)); err != nil {
		return nil, fmt.Errorf("connect to the OVS database at %s, is ovsdb-server running? %w", endpoint, err)
	}
	if err := d.monitorTables(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return d, nil
}

// Close ends the connection.
func (d *DB) Close() { d.client.Close() }

// Changed gets a value when something changed in the database since the last one was taken, counters of configurations
// apart.
func (d *DB) Changed() <-chan struct{} { return d.changed }

func (d *DB) monitorTables(ctx context.Context) error {
	d.client.Cache().AddEventHandler(d.watchEvents())
	o, b, p, i := &openVSwitch{}, &bridge{}, &port{}, &iface{}
	_, err := d.client.Monitor(ctx, d.client.NewMonitor(
		client.WithTable(o, &o.Bridges, &o.CurCfg, &o.ExternalIDs, &o.NextCfg),
		client.WithTable(b, &b.DatapathType, &b.ExternalIDs, &b.FailMode, &b.Name, &b.OtherConfig, &b.Ports),
		client.WithTable(p, &p.Interfaces, &p.Name),
		client.WithTable(i, &i.BFD, &i.BFDStatus, &i.ExternalIDs, &i.MAC, &i.MTURequest, &i.Name, &i.OFPort, &i.Options,
			&i.Type)))
	if err != nil {
		return fmt.Errorf("monitor the OVS database: %w", err)
	}
	return nil
}

// signalChange wakes those who wait; matters tells Changed as well.
func (d *DB) signalChange(matters bool) {
	d.mu.Lock()
	close(d.wake)
	d.wake = make(chan struct{})
	d.mu.Unlock()
	if !matters {
		return
	}
	plane.SignalOnce(d.changed)
}

func (d *DB) nextChange() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wake
}

// awaitCondition blocks until cond holds; cond is asked again after each change.
func (d *DB) awaitCondition(ctx context.Context, cond func() bool) error {
	for {
		changed := d.nextChange()
		if cond() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// commitOps applies ops in one transaction; the cache has them when it returns.
func (d *DB) commitOps(ctx context.Context, ops []ovsdb.Operation) error {
	if len(ops) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	results, err := d.client.Transact(ctx, ops...)
	if err != nil {
		return fmt.Errorf("write to the OVS database, is ovsdb-server running? %w", err)
	}
	if failed, err := ovsdb.CheckOperationResults(results, ops); err != nil {
		return fmt.Errorf("the OVS database refused %v: %w", failed, err)
	}
	return nil
}

// createRows inserts rows of several tables, which libovsdb's Create takes one table at a time.
func (d *DB) createRows(rows ...model.Model) ([]ovsdb.Operation, error) {
	var ops []ovsdb.Operation
	for _, r := range rows {
		op, err := d.client.Create(r)
		if err != nil {
			return nil, err
		}
		ops = append(ops, op...)
	}
	return ops, nil
}

// AwaitSwitchd waits until ovs-vswitchd has carried out everything committed so far.
func (d *DB) AwaitSwitchd(ctx context.Context) error {
	root, err := d.rootRow(ctx)
	if err != nil {
		return err
	}
	ops, err := d.client.Where(root).Mutate(root, model.Mutation{Field: &root.NextCfg,
		Mutator: ovsdb.MutateOperationAdd, Value: 1})
	if err != nil {
		return fmt.Errorf("ask ovs-vswitchd to settle: %w", err)
	}
	if err := d.commitOps(ctx, ops); err != nil {
		return err
	}
	if root, err = d.rootRow(ctx); err != nil {
		return err
	}
	want := root.NextCfg
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	err = d.awaitCondition(ctx, func() bool {
		root, err := d.rootRow(ctx)
		return err == nil && root.CurCfg >= want
	})
	if err != nil {
		return fmt.Errorf("wait for ovs-vswitchd, is it running? %w", err)
	}
	return nil
}

// rootRow is the one row of Open_vSwitch.
func (d *DB) rootRow(ctx context.Context) (*openVSwitch, error) {
	all, err := listRows[openVSwitch](ctx, d)
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, errors.New("the OVS database has no Open_vSwitch row: run `ovs-vsctl --no-wait init`")
	}
	return &all[0], nil
}

// listRows is a copy of a table.
func listRows[T any](ctx context.Context, d *DB) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	rows := []T{}
	if err := d.client.List(ctx, &rows); err != nil {
		return nil, fmt.Errorf("read the OVS database: %w", err)
	}
	return rows, nil
}

// interfaceNamed is the Interface row of that name.
func (d *DB) interfaceNamed(ctx context.Context, name string) (*iface, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	row := &iface{Name: name}
	err := d.client.Get(ctx, row)
	if errors.Is(err, client.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read interface %s: %w", name, err)
	}
	return row, true, nil
}
