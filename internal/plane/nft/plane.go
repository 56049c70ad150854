package nft

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"sigs.k8s.io/knftables"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// Name is the plane's name in errors and logs, and the name of its tables.
const (
	planeName = "nft"
	TableName = "egret"
)

// callTimeout bounds one call of a plane, nft commands and all.
const callTimeout = 20 * time.Second

// Device says which index the link of that name has, and whether there is one.
type Device func(name string) (index int, ok bool)

// Plane holds nftables rows; see the package's comment. It is not safe for concurrent use.
type Plane struct {
	inet, netdev *table
	changes      *changes // nil where nobody tells of them
}

// New is the plane on the two tables TableName of families inet and netdev. device is asked for the links that netdev
// chains name.
func New(inet, netdev knftables.Interface, device Device) *Plane {
	return &Plane{
		inet:   newTable(inet, knftables.InetFamily, device),
		netdev: newTable(netdev, knftables.NetDevFamily, device),
	}
}

// Open is the plane on the nftables of the current thread's network namespace. It needs root and the nft command of
// version 1.0.1 or later.
func Open() (*Plane, error) {
	inet, err := openTable(knftables.InetFamily)
	if err != nil {
		return nil, fmt.Errorf("open nftables (is nft installed, and is this root?): %w", err)
	}
	netdev, err := openTable(knftables.NetDevFamily)
	if err != nil {
		return nil, fmt.Errorf("open nftables family netdev (does the kernel have CONFIG_NF_TABLES_NETDEV?): %w", err)
	}
	c, err := openChanges()
	if err != nil {
		return nil, err
	}
	p := New(watchedSets{watched{inet, c}, inet}, watched{netdev, c}, linkIndex)
	p.changes = c
	return p, nil
}

// Watch signals, until ctx ends, when somebody else has changed our tables. The next Grow reads them again. It is for
// planes that were opened.
func (p *Plane) Watch(ctx context.Context) <-chan struct{} { return p.changes.watchOthers(ctx) }

// ForeignChanges signals, while Watch does, when somebody may have changed tables that are not ours.
func (p *Plane) ForeignChanges() <-chan struct{} { return p.changes.others }

func linkIndex(name string) (int, bool) {
	l, err := net.InterfaceByName(name)
	if err != nil {
		return 0, false
	}
	return l.Index, true
}

// Name is part of plane.Plane.
func (p *Plane) Name() string { return planeName }

// Grow is part of plane.Plane: at most one transaction a table, unless something is refused.
func (p *Plane) Grow(ctx context.Context, want *plan.State) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if p.changes != nil && p.changes.takeForeign() {
		p.Forget()
	}
	return errors.Join(p.inet.growTable(ctx, want), p.netdev.growTable(ctx, want))
}

// Shrink is part of plane.Plane: at most one transaction a table.
func (p *Plane) Shrink(ctx context.Context, want *plan.State) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return errors.Join(p.netdev.shrinkTable(ctx, want), p.inet.shrinkTable(ctx, want))
}

// Forget is part of plane.Plane.
func (p *Plane) Forget() {
	p.inet.held, p.netdev.held = nil, nil
}

func newRefusal(owner plan.Owner, row string, err error) *plane.Refused {
	return &plane.Refused{Plane: planeName, Owner: owner, Row: row, Err: err}
}
