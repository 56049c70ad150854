package pulse

import (
	"context"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

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
