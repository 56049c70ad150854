package pulse

import (
	"context"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// Comparer is target, whose calls need the process.
func (p *Pulse) Comparer(target plane.Comparer) plane.Comparer { return comparer{target, p} }

type comparer struct {
	target  plane.Comparer
	process *Pulse
}

func (c comparer) Name() string { return c.target.Name() }

func (c comparer) Compare(ctx context.Context, want *plan.State) (found []plane.Difference, err error) {
	err = c.process.Do(ctx, func(ctx context.Context) (err error) {
		found, err = c.target.Compare(ctx, want)
		return err
	})
	return found, err
}

// On is target, whose calls need the process.
func (p *Pulse) On(target plane.Plane) plane.Plane { return bound{target, p} }

type bound struct {
	plane.Plane
	process *Pulse
}

func (b bound) Grow(ctx context.Context, want *plan.State) error {
	return b.process.Do(ctx, func(ctx context.Context) error { return b.Plane.Grow(ctx, want) })
}

func (b bound) Shrink(ctx context.Context, want *plan.State) error {
	return b.process.Do(ctx, func(ctx context.Context) error { return b.Plane.Shrink(ctx, want) })
}
