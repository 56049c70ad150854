package ovs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// Plane holds State.OVSIDs and State.Ports in the database. It reads its monitored copy, so Forget has nothing to do.
type Plane struct{ db *DB }

var _ plane.Plane = (*Plane)(nil)

// NewPlane is the plane on db.
func NewPlane(db *DB) *Plane { return &Plane{db} }

const planeName = "ovs"

func (p *Plane) Name() string { return planeName }

func (p *Plane) Forget() {}

// Grow adds and changes settings and ports. A port whose bridge is not there, or whose name is somebody else's, is
// refused.
func (p *Plane) Grow(ctx context.Context, want *plan.State) error {
	p.db.writes.Lock()
	defer p.db.writes.Unlock()
	ids, errs := wellFormed(want)
	if err := p.writeIDs(ctx, ids, false); err != nil {
		return err
	}
	t, err := p.db.readTopology(ctx)
	if err != nil {
		return err
	}
	for k, spec := range want.Ports.Rows() {
		err := checkPort(k, spec)
		if err == nil {
			err = p.db.putPort(ctx, t, k, spec)
		}
		if err != nil && ctx.Err() != nil {
			return err
		}
		if err != nil {
			errs = append(errs, &plane.Refused{Plane: p.Name(), Owner: want.Ports.Owner(k), Row: k.Bridge + " " +
				k.Name, Err: err})
		}
	}
	return errors.Join(errs...)
}

// Shrink removes our settings and ports that want does not have.
func (p *Plane) Shrink(ctx context.Context, want *plan.State) error {
	p.db.writes.Lock()
	defer p.db.writes.Unlock()
	t, err := p.db.readTopology(ctx)
	if err != nil {
		return err
	}
	for name, at := range t.ports {
		if _, ok := want.Ports[plan.Port{Bridge: at.bridge, Name: name}]; ok ||
			at.iface.ExternalIDs[ownerKey] != ownerPlan {
			continue
		}
		ops, err := p.db.removePort(removal{t.bridges[at.bridge], at.port})
		if err == nil {
			err = p.db.commitOps(ctx, ops)
		}
		if err != nil {
			return fmt.Errorf("remove port %s: %w", name, err)
		}
	}
	ids, _ := wellFormed(want) // Grow has said what is refused
	return p.writeIDs(ctx, ids, true)
}

// writeIDs puts our settings among everybody's; shrink drops those of ours that want does not have.
func (p *Plane) writeIDs(ctx context.Context, want map[string]string, shrink bool) error {
	root, err := p.db.rootRow(ctx)
	if err != nil {
		return err
	}
	ids := map[string]string{}
	if !shrink {
		for _, k := range strings.Fields(root.ExternalIDs[keysKey]) {
			ids[k] = root.ExternalIDs[k]
		}
	}
	for k, v := range want {
		if have, ok := root.ExternalIDs[k]; shrink && (!ok || have != v) {
			continue // shrinking makes no row; Grow was not called or something else came between
		}
		ids[k] = v
	}
	if len(ids) > 0 {
		ids[keysKey] = strings.Join(slices.Sorted(maps.Keys(ids)), " ")
	}
	merged := mergeKeys(root.ExternalIDs, ids)
	if maps.Equal(merged, root.ExternalIDs) {
		return nil
	}
	next := *root
	next.ExternalIDs = merged
	ops, err := p.db.client.Where(root).Update(&next, &next.ExternalIDs)
	if err != nil {
		return fmt.Errorf("write Open_vSwitch settings: %w", err)
	}
	return p.db.commitOps(ctx, ops)
}
